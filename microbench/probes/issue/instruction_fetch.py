"""What code costs where an SM does not hold it yet: each launch runs its straight line once, and that run is timed.

A memset evicts code from the L2 and from no SM. So other code runs before, which is larger than every instruction
cache; then, where the code is to come from DRAM, the memset. Still an H200 runs the first 64 KiB of a kernel equally
fast whether they were in the L2 or not, at the rate of the cache that SMs share: it seems that a launch asks for the
begin of its code ahead, for which NVIDIA's launch descriptor has a field (PROGRAM_PREFETCH_SIZE). Hence two times, both
to a block's end: from its own start, and from where a small kernel before it left the same SM. The second holds the
launch, and showed nothing more that grows with the code. What is longer than for code that the SM holds, by the slope
over the code's size, is the fetching alone.
"""

from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from microbench.device.protocol import Kernel
from microbench.machine.arch import CUDA, Machine
from microbench.measure.launch import WARP, Bench, Expected, Launch
from microbench.point import Curves, Point, Reduced, Reducer
from microbench.probe import Axis, Bound, Build, Constant, Metric, OpCount, Probe, Sample, SassContract
from microbench.results.curves import slope
from microbench.shapes.chain import CHAINED_WITHIN, operands, summed

PER_LINE, CHAINS = 8, 4
EVICTOR_LINES, EVICTOR_WARPS = 2048, 4  # 256 KiB of other code: on an H200 as good as 128 and as 384 KiB
MARKER_LINES = 1
REPEATS = 15
SCHEDULERS, MOST_LANES = 4, 128
MOST_SMS = 1024
# An H200's SM holds 24 KiB and no 32; what a launch asks for ahead ends between 64 and 80 KiB.
HELD_LINES, AHEAD_LINES = 128, 512
SIZES = (16, 64, 128, 256, 512, 768, 1024)
# Blocks on every SM, and warps of each.
WHO = {"a_warp": (False, 1), "a_warp_per_sm": (True, 1), "12_warps_per_sm": (True, 12)}


def build(lines: int) -> Build:
    """So many lines in a straight line, and nothing else between the clock reads."""
    return Build((("LINES", lines),), SassContract((OpCount("FFMA", PER_LINE * lines),), "straight", CHAINS))


def builds(point: Point) -> tuple[Build, ...]:
    """The small kernel before, the code that drives other code out of the SMs, and the code that is timed."""
    return build(MARKER_LINES), build(EVICTOR_LINES), build(point["lines"])


@cache
def left(lines: int) -> NDArray[np.float32]:
    """What the threads of a warp leave after so many lines."""
    return summed(lambda x, a, b: x * a + b, CHAINS, lines * PER_LINE // CHAINS, warps=1)


def run(bench: Bench, point: Point) -> list[Sample]:
    """Cycles to the end of one run of code that is where `code` says, the median over SMs."""
    small, other, kernel = bench.kernels(point)
    sms, (everyone, warps) = bench.machine.sm_count, WHO[point["who"]]
    inputs, out = bench.array(operands()), bench.empty(4 * WARP * max(warps, EVICTOR_WARPS) * sms)

    def launch(code: Kernel, lines: int, warps: int, grid: int = sms) -> Launch:
        expected = Expected(out, lambda: np.tile(left(lines), grid * warps), CHAINED_WITHIN)
        args = (inputs, out, bench.array(np.zeros(grid, np.uint32)))
        return Launch(code, grid, WARP * warps, args, expects=(expected,))

    def untimed(launch: Launch) -> None:
        bench.launch(launch, bench.clocks(launch))

    everywhere, evictor = launch(kernel, point["lines"], warps), launch(other, EVICTOR_LINES, EVICTOR_WARPS)
    flushed = bench.empty(bench.footprint(2 * (bench.machine.l2_bytes or 2**26)))
    clock_mhz = bench.cycles(launch(small, MARKER_LINES, EVICTOR_WARPS), evictor, operations=1).clock_mhz
    rounds = []
    for _ in range(bench.trips(REPEATS)):
        pair = (launch(small, MARKER_LINES, 1), launch(kernel, point["lines"], warps, sms if everyone else 1))
        rounds.append([(each, bench.clocks(each)) for each in pair])
    for timed in rounds:
        # Each order holds the evictor, whose 0.1 ms let the host enqueue what follows without a gap.
        for each in (evictor, everywhere) if point["code"] == "held" else (everywhere, evictor):
            untimed(each)
        if point["code"] == "dram":
            flushed.fill(1)
        for each, clocks in timed:
            bench.launch(each, clocks)
    bench.synchronize()
    taken = np.array([cycles(bench, *timed) for timed in rounds])
    low, middle, high = np.quantile(taken, [0.05, 0.5, 0.95], axis=0)
    return [
        Sample(name, float(middle[i]), float(low[i]), float(high[i]), len(taken), clock_mhz)
        for i, name in enumerate(("run_cycles", "launched_cycles"))
    ]


def cycles(bench: Bench, before: tuple[Launch, Any], timed: tuple[Launch, Any]) -> tuple[float, float]:
    """To the end of what is timed: from its start, and from the end of what ran before; the medians over SMs."""
    (_, left_at), (started, ended) = by_sm(bench, *before), by_sm(bench, *timed)
    both = np.isfinite(left_at) & np.isfinite(ended)
    return float(np.median((ended - started)[both])), float(np.median((ended - left_at)[both]))


def by_sm(bench: Bench, launch: Launch, clocks: Any) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The first start and the last end on each SM, by its number; NaN where no block ran."""
    ran_on, read = bench.host(launch.args[-1]), bench.host(clocks).reshape(launch.grid, launch.block // WARP, 2)
    started, ended = np.full(MOST_SMS, np.nan), np.full(MOST_SMS, np.nan)
    np.fmin.at(started, ran_on, read[:, :, 0].min(axis=1).astype(np.float64))
    np.fmax.at(ended, ran_on, read[:, :, 1].max(axis=1).astype(np.float64))
    return started, ended


def least_cycles(machine: Machine, point: Point) -> float | None:
    """Every scheduler issues one warp's FFMA a cycle; where an SM has 64 lanes, one every other cycle."""
    limits = machine.arch.limits
    if limits is None:
        return None
    each = max(1, WHO[point["who"]][1] // SCHEDULERS) * (MOST_LANES // limits.fp32_lanes)
    return float(point["lines"] * PER_LINE * each)


def beyond_held(code: str, least: int, most: int) -> Reducer:
    """Cycles per line, a warp on every SM, beyond those of held code: the difference of two slopes over the size.

    At least a cycle over all lines: less no clock tells from nothing, which is what an emulator without caches has.
    """

    def along(curves: Curves, code: str, low: int, high: int) -> Reduced:
        keep = [i for i, point in enumerate(curves.points) if low <= point["lines"] <= high]
        sized = Curves(tuple(curves.points[i] for i in keep), curves.values[:, keep])
        return slope("lines", code=code, who="a_warp_per_sm")(sized)

    def reduce(curves: Curves) -> Reduced:
        far, held = along(curves, code, least, most), along(curves, "held", 0, HELD_LINES)
        return Reduced(np.maximum(far.per_campaign - held.per_campaign, 1 / max(SIZES)))

    return reduce


BOUND = Bound("a scheduler issues an instruction a cycle", lower=least_cycles)
PROBE = Probe(
    asks="What does straight-line code cost the first time an SM runs it, from DRAM and from the L2?",
    archs=CUDA,
    axes=(
        Axis("lines", SIZES, quick=tuple(lines for lines in SIZES if lines <= AHEAD_LINES)),
        Axis("code", ("held", "l2", "dram")),
        Axis("who", tuple(WHO), quick=("a_warp_per_sm",)),
    ),
    metrics=(Metric("run_cycles", "cycles", BOUND), Metric("launched_cycles", "cycles", BOUND)),
    builds=builds,
    run=run,
    constants=tuple(
        Constant(f"instruction_fetch_{name}_cycles_per_line", "run_cycles", reduce, unit="cycles/line", quick=quick)
        for name, reduce, quick in (
            ("cold", beyond_held("dram", 0, AHEAD_LINES), True),
            ("l2", beyond_held("l2", 0, AHEAD_LINES), True),
            ("cold_past_64kib", beyond_held("dram", AHEAD_LINES, max(SIZES)), False),
            ("l2_past_64kib", beyond_held("l2", AHEAD_LINES, max(SIZES)), False),
        )
    ),
)
