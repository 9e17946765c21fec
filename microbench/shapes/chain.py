"""The probe shapes that repeat: a dependent chain, and a full SM of independent chains.

An arithmetic probe is its operation in a .cu (see cuda/chain.cuh) and one call of a function below in its .py.
"""

from collections.abc import Callable
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from microbench.bounds import limit
from microbench.machine.arch import CUDA, Limits, Machine
from microbench.measure.launch import Bench, Expected, Launch
from microbench.point import Point, Reducer
from microbench.probe import Axis, Bound, Build, Constant, Metric, OpCount, Overhead, Probe, Sample, SassContract
from microbench.results.curves import at, peak

CHAIN = 128
# Beside the operations of a counted loop: one step of its counter and one compare, in uniform registers from Hopper on.
COUNT = ("IADD3", "VIADD", "UIADD3", "ISETP", "UISETP")
COUNTER = Overhead(COUNT, 2, 2)
# ptxas pads Volta's loops with one instruction that is predicated off; before Hopper it leaves a loop of 4 KiB by a
# CALL to the place behind it, and others by EXIT.
FILLER = Overhead(("NOP", "EXIT", "CALL.REL"), 0, 1)

# What ptx::settle puts before the closing clock read of a straight chain; it cancels in the slope.
SETTLE = Overhead(("ISETP", "PMTRIG"), 0, 2)


def straight(opcode: str, count: int) -> SassContract:
    """A chain in a straight line, each operation waiting for the one before, between two clock reads."""
    return SassContract((OpCount(opcode, count),), "straight", 1, (SETTLE,))


def loop(
    *ops: OpCount,
    distance: int | None = None,
    overhead: tuple[Overhead, ...] = (COUNTER, FILLER),
    clocks: Literal[0, 2] = 2,
) -> SassContract:
    """A timed loop of exactly these ops, its counter, and what else the overhead names."""
    return SassContract(ops, "loop", distance, overhead, clocks)


Cycles = Callable[[Machine, Point], float | None]


def latency_metric(why: str, least_cycles: float | Cycles) -> Metric:
    """latency_cycles, at least `least_cycles`. Inside the SM a time says nothing more: it is cycles over the clock."""
    return cycles_metric("latency", why, least_cycles if callable(least_cycles) else lambda *_: least_cycles)


def cycles_metric(prefix: str, why: str, least: Cycles) -> Metric:
    """<prefix>_cycles, at least `least` of them."""
    return Metric(f"{prefix}_cycles", "cycles", Bound(why, lower=least))


def times(name: str, reduce: Reducer) -> tuple[Constant, ...]:
    """<name>_cycles and <name>_ns, of the metrics latency_cycles and latency_ns."""
    return tuple(Constant(f"{name}_{unit}", f"latency_{unit}", reduce) for unit in ("cycles", "ns"))


Rows = NDArray[np.float64]
# The operation in NumPy, of (x, a, b) in float64: what the kernel computes is held against it where it is executed.
Step = Callable[[Rows, Rows, Rows], Rows]
# Chains of a few hundred roundings, and an approximation of 2 units in the last place at each.
CHAINED_WITHIN = 1e-4


def chain_latency(
    asks: str,
    opcode: str,
    least_cycles: Callable[[Limits], float],
    constant: str,
    *,
    step: Step,
    archs: tuple[str, ...] = CUDA,
    width: int = 1,
) -> Probe:
    """Latency of one operation: the slope between CHAIN and 2 x CHAIN dependent ones, one warp on every SM.

    `width` is how many f32 a thread's operand has.
    """

    def builds(_: Point) -> tuple[Build, ...]:
        return tuple(Build((("CHAIN", n),), straight(opcode, n)) for n in (CHAIN, 2 * CHAIN))

    def run(bench: Bench, point: Point) -> list[Sample]:
        sms, inputs = bench.machine.sm_count, bench.array(operands(width))
        out = bench.empty(4 * 32 * width * sms)

        def expected(count: int) -> Expected:
            x, a, b = operands(width)
            return Expected(out, lambda: np.tile(chained(step, x, a, b, count), sms), CHAINED_WITHIN)

        short, long = (
            Launch(kernel, sms, 32, (inputs, out), expects=(expected(n),))
            for kernel, n in zip(bench.kernels(point), (CHAIN, 2 * CHAIN), strict=True)
        )
        return [bench.cycles(short, long, operations=CHAIN).sample("latency_cycles")]

    why = f"a dependent {opcode} cannot issue before its pipe has the result"
    return Probe(
        asks=asks,
        archs=archs,
        metrics=(latency_metric(why, limit(least_cycles)),),
        builds=builds,
        run=run,
        constants=(Constant(f"{constant}_latency_cycles", "latency_cycles", at()),),
    )


def chain_throughput(
    asks: str,
    opcode: str,
    rate: Callable[[Limits], float],
    constant: str,
    *,
    step: Step,
    per_trip: int = 64,
    archs: tuple[str, ...] = CUDA,
    width: int = 1,
    warps: tuple[int, ...] = (4, 8, 16, 32),
    since: str = "",
) -> Probe:
    """Results per clock and SM of one operation, of `width` f32 a thread, over warps and independent chains a warp."""

    def builds(point: Point) -> tuple[Build, ...]:
        defines = (("ILP", point["ilp"]), ("PER_TRIP", per_trip), ("THREADS", 32 * point["warps"]))
        return (Build(defines, loop(OpCount(opcode, per_trip), distance=point["ilp"])),)

    def run(bench: Bench, point: Point) -> list[Sample]:
        (kernel,) = bench.kernels(point)
        sms, warps, ilp = bench.machine.sm_count, point["warps"], point["ilp"]
        threads, trips = 32 * warps, bench.trips(64)
        inputs, out = bench.array(operands(width)), bench.empty(4 * threads * width * sms)

        def expected(count: int) -> Expected:
            return Expected(out, lambda: summed(step, ilp, count * per_trip // ilp, sms * warps, width), CHAINED_WITHIN)

        short, long = (
            Launch(kernel, sms, threads, (inputs, np.int32(n), out), expects=(expected(n),)) for n in (trips, 2 * trips)
        )
        cycles = bench.cycles(short, long, operations=1)
        return [cycles.inverse("results_per_clk_sm", trips * per_trip * threads * width)]

    return Probe(
        asks=asks,
        archs=archs,
        axes=(Axis("warps", warps, quick=(16, 32)), Axis("ilp", (1, 2, 4), quick=(4,))),
        metrics=(
            Metric(
                "results_per_clk_sm", "results/clk/SM", Bound("lanes of the pipe", upper=limit(rate), documented=True)
            ),
        ),
        builds=builds,
        run=run,
        constants=(Constant(f"{constant}_per_clk_sm", "results_per_clk_sm", peak("warps", ilp=4)),),
        since=since,
    )


def operands(width: int = 1) -> NDArray[np.float32]:
    """Three rows of a warp: x, a, b near 1, so that a long multiply-add chain stays finite."""
    rng, count = np.random.default_rng(7), 32 * width
    rows = np.stack([rng.uniform(0.5, 1.5, count), rng.uniform(0.9, 0.99, count), rng.uniform(0.01, 0.1, count)])
    return rows.astype(np.float32)


def summed(step: Step, chains: int, count: int, warps: int, width: int = 1) -> NDArray[np.float32]:
    """What every thread of chain_throughput leaves: the sum of its chains, each so many steps on."""
    x, a, b = operands(width)
    ends = [chained(step, x + a * np.float32(i), a, b, count) for i in range(chains)]
    return np.tile(np.sum(ends, axis=0, dtype=np.float32), warps)


def chained(step: Step, x: NDArray[Any], a: NDArray[Any], b: NDArray[Any], count: int) -> NDArray[np.float32]:
    a, b = a.astype(np.float64), b.astype(np.float64)
    for _ in range(count):
        x = step(x.astype(np.float64), a, b).astype(np.float32)
    return x
