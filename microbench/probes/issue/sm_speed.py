"""Whether one SM is slower than the others: the same FFMA loop on each, by the SM's number.

What a median over SMs hides: an SM that another process shares, or a damaged one. The map is one row of a run.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from microbench.machine.arch import CUDA
from microbench.measure.launch import WARP, Bench, Expected, Launch
from microbench.point import Point
from microbench.probe import Bound, Build, Constant, Metric, OpCount, Probe, Sample
from microbench.results.curves import at
from microbench.shapes.chain import CHAINED_WITHIN, loop, operands, summed

WARPS, ILP, PER_TRIP, TRIPS, REPEATS = 8, 4, 256, 256, 9
THREADS = 32 * WARPS
MOST_SMS = 1024


def builds(_: Point) -> tuple[Build, ...]:
    defines = (("ILP", ILP), ("PER_TRIP", PER_TRIP), ("THREADS", THREADS))
    return (Build(defines, loop(OpCount("FFMA", PER_TRIP), distance=ILP)),)


def run(bench: Bench, point: Point) -> list[Sample]:
    """How much longer the slowest SM takes than the median one, and the cycles of each a trip of its loop."""
    (kernel,) = bench.kernels(point)
    blocks, trips = bench.machine.sm_count, bench.trips(TRIPS)
    inputs, out = bench.array(operands()), bench.empty(4 * THREADS * blocks)
    sms = bench.array(np.zeros(blocks, np.uint32))

    def launch(count: int) -> Launch:
        def values() -> NDArray[np.float32]:
            return summed(lambda x, a, b: x * a + b, ILP, count * PER_TRIP // ILP, blocks * WARPS)

        args = (inputs, np.int32(count), out, sms)
        return Launch(kernel, blocks, THREADS, args, expects=(Expected(out, values, CHAINED_WITHIN),))

    short, long = launch(trips), launch(2 * trips)
    clock_mhz = bench.cycles(short, long, operations=trips).clock_mhz
    rounds = np.array([by_sm(bench, long, sms) for _ in range(REPEATS)]) / (2 * trips)
    ratios = np.nanmax(rounds, axis=1) / np.maximum(np.nanmedian(rounds, axis=1), 1.0)
    value, low, high = (float(found) for found in (np.median(ratios), ratios.min(), ratios.max()))
    last = int(np.flatnonzero(np.isfinite(rounds).any(axis=0)).max())
    return [Sample("slowest_sm_ratio", value, low, high, REPEATS, clock_mhz, values=middles(rounds[:, : last + 1]))]


def by_sm(bench: Bench, launch: Launch, sms: Any) -> NDArray[np.float64]:
    """Cycles of one launch on each SM by its number, from its first start to its last end; NaN where no block ran.

    One block an SM; where another process holds one, two share an SM, and the later one's end counts.
    """
    clocks = bench.clocks(launch)
    bench.launch(launch, clocks)
    bench.synchronize()
    read = bench.host(clocks).reshape(launch.grid, launch.block // WARP, 2)
    spans = (read[:, :, 1].max(axis=1) - read[:, :, 0].min(axis=1)).astype(np.float64)
    found = np.full(MOST_SMS, np.nan)
    np.fmax.at(found, bench.host(sms), spans)
    return found


def middles(rounds: NDArray[np.float64]) -> tuple[float | None, ...]:
    """The median of each SM's rounds; None for a number that no SM has."""
    return tuple(float(np.nanmedian(each)) if np.isfinite(each).any() else None for each in rounds.T)


PROBE = Probe(
    asks="Is any SM slower than the others?",
    archs=CUDA,
    metrics=(Metric("slowest_sm_ratio", "ratio", Bound("the slowest is no faster than the median one", lower=1.0)),),
    builds=builds,
    run=run,
    constants=(Constant("slowest_sm_ratio", "slowest_sm_ratio", at()),),
)
