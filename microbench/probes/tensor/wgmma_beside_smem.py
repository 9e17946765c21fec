"""Shared memory beside wgmma: how much of a warpgroup's loads or stores there hides behind another one's products.

A wgmma reads B, and A where it is not in registers, from shared memory: at N = 128 that is 96 of the 128 bytes a clock,
with A in registers 64. What is left is all that copies, or a softmax that goes through shared memory, can have.
"""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from microbench.machine.arch import Machine, by_name, with_feature
from microbench.measure.launch import Bench, Expected, Launch
from microbench.point import Point
from microbench.probe import Axis, Build, Constant, OpCount, Overhead, Probe, Sample
from microbench.results.curves import at
from microbench.shapes.accesses import load_shared
from microbench.shapes.beside import CYCLES_A_LAUNCH, Part, metrics, samples
from microbench.shapes.chain import COUNTER, loop
from microbench.shapes.matrix import A_ROWS, PER_TRIP, K, nothing_left, wgmma_operands, wgmma_smem_bytes
from microbench.shapes.wgmma import NAMED, OPERANDS, flops
from microbench.shapes.wgmma_beside import N, contract, least_of_products

WARPGROUP = 128
THREADS = 2 * WARPGROUP
ACCESS_BYTES = 16  # of a thread
WORD = np.uint32(2654435761)  # four times its number is the first word of each thread
# The least time of the accesses over that of the products, both at their documented rates.
TIME_RATIO = Axis("time_ratio", (0.25, 0.5, 1.0), quick=(0.5,))


def accesses(point: Point) -> int:
    """Of one thread and trip: an even number."""
    limits = by_name("sm90a").limits
    assert limits is not None
    cycles = PER_TRIP * flops(point) / limits.tensor_f16_flops_per_clk
    wanted: float = point["time_ratio"] * cycles * limits.smem_bytes_per_clk / (ACCESS_BYTES * WARPGROUP)
    return 2 * round(wanted / 2)


def builds(point: Point) -> tuple[Build, ...]:
    """One kernel of two loops, of which a launch runs either or both."""
    count, loads = accesses(point), point["access"] == "load"
    op = load_shared(8 * ACCESS_BYTES, count) if loads else OpCount("STS.128", count)
    # An XOR takes a word of two loads; stores leave nothing to look at.
    looks = (Overhead(("LOP3",), 2 * count, 2 * count),) if loads else ()
    copies = loop(op, distance=0, overhead=(*looks, COUNTER))
    defines = (("N_COLUMNS", point["n"]), ("A_IN_REGISTERS", int(point["operands"] == "rs")))
    work = (("ACCESSES", count), ("LOADS", int(loads)))
    return (Build((*defines, *work), replace(contract(point), beside=(copies,))),)


def run(bench: Bench, point: Point) -> list[Sample]:
    """One block of two warpgroups on every SM."""
    (kernel,), sms, n = bench.kernels(point), bench.machine.sm_count, int(point["n"])
    a, b = map(bench.array, wgmma_operands("normal", 2, n))
    sums, ends = bench.empty(4 * THREADS * sms), bench.empty(4 * THREADS * sms)
    places = accesses(point) if point["access"] == "store" else 1
    smem = wgmma_smem_bytes(1, n) + places * ACCESS_BYTES * WARPGROUP

    def launch(part: Part, trips: int) -> Launch:
        products, others = trips * (part != "work"), trips * (part != "products")
        stored = others > 0 and point["access"] == "store"
        expects = nothing_left(sums, THREADS * sms), Expected(ends, lambda: np.tile(seen(places, stored), sms))
        args = (a, b, np.int32(products), np.int32(others), sums, ends)
        return Launch(kernel, sms, THREADS, args, smem, expects)

    least = least_of_products(bench.machine, point)
    assert least is not None
    return samples(bench, round(CYCLES_A_LAUNCH / least), launch)


def seen(places: int, stored: bool) -> NDArray[np.uint32]:
    """What each thread sees in its places, by XOR of words and summed: as they were, or as they were stored."""
    word = np.arange(WARPGROUP, THREADS, dtype=np.uint32) * np.uint32(4) * WORD
    first = word * np.uint32(3) if stored else word
    one = first ^ (word + np.uint32(1)) ^ (word + np.uint32(2)) ^ (word + np.uint32(5))
    return np.concatenate([np.zeros(WARPGROUP, np.uint32), np.uint32(places) * one])


def nbytes(point: Point) -> float:
    """Of a trip's accesses."""
    return float(accesses(point) * ACCESS_BYTES * WARPGROUP)


def least_of_copies(machine: Machine, point: Point) -> float | None:
    limits = machine.arch.limits
    return nbytes(point) / limits.smem_bytes_per_clk if limits else None


def least_of_both(machine: Machine, point: Point) -> float | None:
    """All bytes of operands and copies through one port, or the products where that is longer."""
    limits, products = machine.arch.limits, least_of_products(machine, point)
    if limits is None or products is None:
        return None
    rows: float = point["n"] + (A_ROWS if point["operands"] == "ss" else 0)
    return max(products, (nbytes(point) + PER_TRIP * rows * 2.0 * K) / limits.smem_bytes_per_clk)


PROBE = Probe(
    asks="How much of the time of loads and stores in shared memory hides behind wgmma, which reads there too?",
    archs=with_feature("wgmma"),
    axes=(N, replace(OPERANDS, quick=("ss",)), TIME_RATIO, Axis("access", ("load", "store"))),
    metrics=metrics(
        least_of_products,
        least_of_copies,
        "tensor-core rate, and the operands' way out of shared memory at 128 bytes per clock",
        "32 banks of 4 bytes",
        least_of_both,
    ),
    builds=builds,
    run=run,
    constants=tuple(
        Constant(
            f"{name}_beside_smem_{access}_overlap_ratio",
            "overlap_ratio",
            at(n=n, operands=operands, time_ratio=0.5, access=access),
            quick=(n, operands) == (128, "ss"),
        )
        for name, n, operands in NAMED
        for access in ("load", "store")
    ),
)
