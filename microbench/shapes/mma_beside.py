"""What hides behind mma.sync: work of the same warps, as far as ptxas mixes it in, and that of the warps beside them.

Unlike wgmma it is issued product by product, and a warp that has nothing else ready waits. One warp on each scheduler
multiplies; the work beside it is its own, or that of a second warp on the scheduler.
"""

from dataclasses import replace
from functools import partial

from microbench.machine.arch import Machine, with_feature
from microbench.machine.tensor import tensor_flops_per_clk
from microbench.measure.launch import Bench
from microbench.point import Point
from microbench.probe import Axis, Build, Constant, OpCount, Overhead, Probe, Sample
from microbench.results.curves import at
from microbench.shapes.beside import (
    AMONG,
    CHAINS,
    CYCLES_A_LAUNCH,
    OTHER,
    THREADS,
    WARPS,
    Work,
    metrics,
    parts,
    samples,
)
from microbench.shapes.chain import COUNTER, FILLER, Cycles, loop, operands
from microbench.shapes.matrix import K, mma_operands, tensor_cycles

PRODUCTS = 32  # kTrip of mma_beside.cuh
FLOPS = PRODUCTS * WARPS * 2.0 * 16 * 8 * K  # of a trip, on one SM
# Fillers behind an HMMA that waits longer than a stall count reaches (shapes/matrix.py).
FILLERS = Overhead(("NOP",), 0, 2 * PRODUCTS)
LONG = Overhead(("CALL.REL",), 0, 1)  # how ptxas leaves a loop of 4 KiB before Hopper
LABELS = {AMONG: "", OTHER: "_other_warps"}


def builds(work: Work, point: Point) -> tuple[Build, ...]:
    """Products alone, work alone and both, each in a loop of its own; or one kernel of two loops."""
    op, product = OpCount(work.opcode, point["results"]), OpCount("HMMA.16816.F32.BF16", PRODUCTS)
    alone = loop(op, distance=CHAINS, overhead=(COUNTER, FILLER))
    products = loop(product, distance=CHAINS, overhead=(COUNTER, FILLERS))
    if point["where"] == OTHER:
        defines = (("PRODUCTS", 1), ("RESULTS", point["results"]), ("WHERE", OTHER), ("THREADS", 2 * THREADS))
        return (Build(defines, replace(products, beside=(alone,))),)
    both = loop(product, op, overhead=(COUNTER, FILLERS, LONG))
    return tuple(
        Build((("PRODUCTS", multiplies), ("RESULTS", results), ("WHERE", AMONG), ("THREADS", THREADS)), kept)
        for multiplies, results, kept in ((1, 0, products), (0, point["results"], alone), (1, point["results"], both))
    )


def run(work: Work, bench: Bench, point: Point) -> list[Sample]:
    """One block on every SM, of four warps or eight."""
    threads = THREADS * (2 if point["where"] == OTHER else 1)
    given = bench.array(mma_operands("bf16", "normal", threads, CHAINS)), bench.array(operands())
    launch = parts(bench, point, work, int(point["results"]), given)
    rate = tensor_flops_per_clk(bench.machine)
    assert rate is not None
    return samples(bench, round(CYCLES_A_LAUNCH * rate / FLOPS), launch)


def least_of_work(work: Work) -> Cycles:
    """Of a trip's work, on one SM."""

    def least(machine: Machine, point: Point) -> float | None:
        return work.cycles(machine, THREADS * float(point["results"]))

    return least


def mma_beside(asks: str, work: Work, results: tuple[int, int]) -> Probe:
    """A probe of this operation beside mma.sync; the first number of results a thread and trip is the constant's."""
    return Probe(
        asks=asks,
        archs=with_feature("mma_m16n8k16"),
        axes=(Axis("results", results, quick=results[:1]), Axis("where", (AMONG, OTHER))),
        metrics=metrics(
            tensor_cycles(FLOPS),
            least_of_work(work),
            "dense peak of the tensor cores",
            f"lanes of the pipe of {work.opcode}",
        ),
        builds=partial(builds, work),
        run=partial(run, work),
        constants=tuple(
            Constant(
                f"mma_bf16_beside_{work.name}{label}_overlap_ratio",
                "overlap_ratio",
                at(results=results[0], where=where),
            )
            for where, label in LABELS.items()
        ),
    )
