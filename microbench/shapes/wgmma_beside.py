"""What hides behind wgmma: a warpgroup's own work while its products are in flight, or that of the warpgroup beside it.

A trip is eight wgmma, issued in a row and waited for: the order of a kernel that needs them before its next step. So
the products' own time holds the wait for the last one, and work may fill it. ptxas would move the work in among the
products, 13 MUFU behind each of the first wgmma of N = 128, which then come later than the tensor cores want them:
`among` leaves it that, and `after` pins the work behind all eight (beside.cuh).
"""

from dataclasses import replace
from functools import partial

from microbench.machine.arch import Machine, by_name, with_feature
from microbench.measure.launch import Bench
from microbench.point import Point
from microbench.probe import Axis, Build, Constant, OpCount, Overhead, Probe, Sample, SassContract
from microbench.results.curves import at
from microbench.shapes.beside import (
    AFTER,
    AMONG,
    CHAINS,
    CYCLES_A_LAUNCH,
    OTHER,
    THREADS,
    WHERE,
    Work,
    metrics,
    parts,
    samples,
)
from microbench.shapes.chain import COUNT, COUNTER, Cycles, loop, operands
from microbench.shapes.matrix import PER_TRIP, wgmma_operands, wgmma_smem_bytes
from microbench.shapes.wgmma import DESCRIPTORS, DESCRIPTORS_MAX, KINDS, NAMED, OPERANDS, flops, least_cycles

N = Axis("n", (64, 128, 256), quick=(128,))
# The least time of the work over that of the products, both as their rates are documented.
TIME_RATIO = Axis("time_ratio", (0.5, 1.0), quick=(1.0,))
# A pin is a trigger under a compare, which both may share.
PINS, COMPARES = Overhead(("PMTRIG",), 2, 2), 2
LABELS = {AFTER: "", AMONG: "_among", OTHER: "_other_warpgroup"}


def results(work: Work, point: Point) -> int:
    """Of one thread and trip, in whole rounds of its chains."""
    limits = by_name("sm90a").limits
    assert limits is not None
    multiply = PER_TRIP * flops(point) / limits.tensor_f16_flops_per_clk  # cycles of a trip
    wanted: float = point["time_ratio"] * multiply * work.lanes(limits) / THREADS
    return round(wanted / CHAINS) * CHAINS


def contract(point: Point, work: OpCount | None = None, behind: bool = False) -> SassContract:
    """A loop of eight wgmma, of work that may stand beside them, or behind all of them, and of one wait at the end."""
    products = OpCount(f"HGMMA.64x{point['n']}x16.F32.BF16", PER_TRIP, operands=KINDS[point["operands"]])
    arrive, wait = OpCount("WARPGROUP.ARRIVE", 1), OpCount("WARPGROUP.DEPBAR.LE", 1)
    descriptors = Overhead((*DESCRIPTORS, *COUNT), 2, DESCRIPTORS_MAX + (COMPARES if behind else 0))
    if work is None:
        return loop(arrive, products, wait, overhead=(descriptors,))
    kept = loop(arrive, products, work, wait, overhead=(descriptors, PINS) if behind else (descriptors,))
    order = ((work.opcode, wait.opcode), (products.opcode, work.opcode))
    return replace(kept, before=order if behind else order[:1])


def builds(work: Work, point: Point) -> tuple[Build, ...]:
    """Products alone, work alone and both, each in a loop of its own; or one kernel of two loops."""
    count, op, where = results(work, point), OpCount(work.opcode, results(work, point)), point["where"]
    alone, products = loop(op, distance=CHAINS, overhead=(COUNTER,)), contract(point)

    def build(kept: SassContract, multiplies: bool, count: int, placed: str) -> Build:
        shape = (("N_COLUMNS", point["n"]), ("A_IN_REGISTERS", int(point["operands"] == "rs")))
        threads = THREADS * (2 if placed == OTHER else 1)
        what = (("PRODUCTS", int(multiplies)), ("RESULTS", count), ("WHERE", placed), ("THREADS", threads))
        return Build((*shape, *what), kept)

    if where == OTHER:
        return (build(replace(products, beside=(alone,)), True, count, OTHER),)
    both = contract(point, op, behind=where == AFTER)
    return (build(products, True, 0, AFTER), build(alone, False, count, AFTER), build(both, True, count, where))


def run(work: Work, bench: Bench, point: Point) -> list[Sample]:
    """One block on every SM, of one warpgroup or two."""
    factors = wgmma_operands("normal", 2 if point["where"] == OTHER else 1, point["n"])
    given = *map(bench.array, factors), bench.array(operands())
    launch = parts(bench, point, work, results(work, point), given, wgmma_smem_bytes(1, point["n"]))
    least = least_cycles(bench.machine, point)
    assert least is not None
    return samples(bench, round(CYCLES_A_LAUNCH / (PER_TRIP * least)), launch)


def least_of_work(work: Work) -> Cycles:
    """Of a trip's work, on one SM."""
    return lambda machine, point: work.cycles(machine, THREADS * results(work, point))


def least_of_products(machine: Machine, point: Point) -> float | None:
    """Of a trip's wgmma, on one SM."""
    each = least_cycles(machine, point)
    return PER_TRIP * each if each else None


def constants(work: Work) -> tuple[Constant, ...]:
    """The overlap of equal times, by the wgmma and by where the work stands."""
    return tuple(
        Constant(
            f"{name}_beside_{work.name}{label}_overlap_ratio",
            "overlap_ratio",
            at(n=n, operands=operands, where=where, time_ratio=1.0),
            quick=(n, operands) == (128, "ss"),
        )
        for name, n, operands in NAMED
        for where, label in LABELS.items()
    )


def wgmma_beside(asks: str, work: Work) -> Probe:
    """A probe of this operation beside wgmma."""
    why = "tensor-core rate, and the operands' way out of shared memory at 128 bytes per clock"
    return Probe(
        asks=asks,
        archs=with_feature("wgmma"),
        axes=(N, replace(OPERANDS, quick=("ss",)), TIME_RATIO, WHERE),
        metrics=metrics(least_of_products, least_of_work(work), why, f"lanes of the pipe of {work.opcode}"),
        builds=partial(builds, work),
        run=partial(run, work),
        constants=constants(work),
    )
