"""Two kinds of work on one SM: each alone, both together, and how much of the shorter one hides behind the longer one.

What a probe of this shape launches: kernels whose trip is some tensor-core products, some work beside them, or both.
Independent pipes overlap in full; what they share (issue slots, register ports, shared memory, a warp that waits at a
full queue) shows as an overlap below 1. Each time is of the same trip, so that an overlap needs no rate.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from microbench.machine.arch import Limits, Machine
from microbench.measure.launch import Bench, Expected, Launch, Measured
from microbench.point import Point
from microbench.probe import Axis, Bound, Metric, Sample
from microbench.shapes.chain import CHAINED_WITHIN, Cycles, Step, cycles_metric, summed
from microbench.shapes.matrix import nothing_left

WARPS = 4  # of a warpgroup, one on each scheduler
THREADS = 32 * WARPS
CHAINS = 8  # of beside.cuh: one warp a scheduler keeps the pipe of any operation full with so many
AFTER, AMONG, OTHER = "after", "among", "other"
# Behind the products of a trip, among them as ptxas mixes it in, or in other warps (the enum of beside.cuh).
WHERE = Axis("where", (AFTER, AMONG, OTHER))
Part = Literal["products", "work", "both"]
PARTS: tuple[Part, ...] = ("products", "work", "both")  # alone, alone, and together
CYCLES_A_LAUNCH = 200_000  # of the in-kernel reading


@dataclass(frozen=True)
class Work:
    """An operation beside products: its name in constants, in SASS and in NumPy, and the lanes of its pipe."""

    name: str
    opcode: str
    step: Step
    lanes: Callable[[Limits], int]

    def cycles(self, machine: Machine, results: float) -> float | None:
        """What an SM needs at least for so many results, of all threads together."""
        return results / self.lanes(machine.arch.limits) if machine.arch.limits else None


EX2 = Work("ex2", "MUFU.EX2", lambda x, a, b: np.exp2(-x), lambda limits: limits.mufu_lanes)
FFMA = Work("ffma", "FFMA", lambda x, a, b: x * a + b, lambda limits: limits.fp32_lanes)


def left(out: Any, sms: int, work: Work, warps: Sequence[tuple[int, int]]) -> Expected:
    """What the threads of a block hold of their chains: (warps, results of each thread), in order, on every SM."""

    def values() -> NDArray[np.float32]:
        block = [summed(work.step, CHAINS, results // CHAINS, count) for count, results in warps]
        return np.tile(np.concatenate(block), sms)

    return Expected(out, values, CHAINED_WITHIN)


def metrics(
    products: Cycles, work: Cycles, why_products: str, why_work: str, both: Cycles | None = None
) -> tuple[Metric, ...]:
    """Cycles of one SM for a trip of products alone, of work alone and of both, and the overlap of the two.

    The first four say what physics asks of each part; `both` says it of two that share a pipe.
    """

    def longer(machine: Machine, point: Point) -> float | None:
        known = [least for each in (products, work) if (least := each(machine, point)) is not None]
        return max(known, default=None)

    full = "both together take no less time than the longer one takes alone"
    return (
        cycles_metric("products", why_products, products),
        cycles_metric("work", why_work, work),
        cycles_metric("both", f"{why_products}; {why_work}", both or longer),
        Metric("overlap_ratio", "ratio", Bound(full, upper=1.0)),
    )


def samples(bench: Bench, trips: int, launch: Callable[[Part, int], Launch]) -> list[Sample]:
    """The four metrics. `launch(part, trips)` has so many trips of products, of work or of both."""
    trips = bench.trips(trips)
    products, work, both = (
        bench.cycles(launch(part, trips), launch(part, 2 * trips), operations=trips) for part in PARTS
    )
    alone = (products.sample("products_cycles"), work.sample("work_cycles"), both.sample("both_cycles"))
    return [*alone, overlap(products, work, both)]


def parts(
    bench: Bench, point: Point, work: Work, results: int, given: Sequence[Any], smem_bytes: int = 0
) -> Callable[[Part, int], Launch]:
    """How `samples` launches the kernels of beside.cuh: one block on every SM, of one warpgroup or two.

    `given` are the kernel's arguments before its trips, `results` those of work in one thread and trip.
    """
    kernels, sms, apart = bench.kernels(point), bench.machine.sm_count, point["where"] == OTHER
    threads = THREADS * (2 if apart else 1)
    sums, ends = bench.empty(4 * threads * sms), bench.empty(4 * threads * sms)

    def launch(part: Part, trips: int) -> Launch:
        products, others = trips * (part != "work"), trips * (part != "products")
        kernel, warps = kernels[0], [(WARPS, 0), (WARPS, others * results)]
        if not apart:
            kernel, warps = kernels[PARTS.index(part)], warps[1:]
            products = trips  # one loop, which either part may lack
        args = (*given, np.int32(products), np.int32(others), sums, ends)
        expects = nothing_left(sums, threads * sms), left(ends, sms, work, warps)
        return Launch(kernel, sms, threads, args, smem_bytes, expects)

    return launch


def overlap(products: Measured, work: Measured, both: Measured) -> Sample:
    """The share of the shorter part that hides: 1 where both take as long as the longer one, 0 where they add up.

    Its ends are those that the three spreads allow together.
    """

    def hidden(first: float, second: float, together: float) -> float:
        return (first + second - together) / min(first, second)

    return Sample(
        "overlap_ratio",
        hidden(products.value, work.value, both.value),
        hidden(products.low, work.low, both.high),
        hidden(products.high, work.high, both.low),
        both.n,
        both.clock_mhz,
    )
