"""The shape that host throughput probes share: a kernel that laps over arrays in the first cache, on one core and all.

A host arithmetic probe is its kernel and one call of `throughput`.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from microbench.compile.host_code import Kernel
from microbench.device.host_threads import Work
from microbench.machine import cpu as host_cpu
from microbench.machine.arch import HOST, Machine
from microbench.measure.host import HostBench
from microbench.measure.host_asm import LoopContract, require_loop
from microbench.point import Curves, NoValue, Point, Reduced, Reducer, Value
from microbench.probe import Axis, Bound, Constant, Metric, Probe, Sample

Arrays = tuple[Any, ...]


@dataclass(frozen=True)
class Lap:
    """A kernel called as kernel(*arrays, laps), the operations of a lap, and its contract, if it has one."""

    kernel: Kernel
    arrays: Callable[[HostBench], Arrays]
    operations: int
    contract: LoopContract | None = None

    def work(self, bench: HostBench) -> Work:
        arrays = self.arrays(bench)
        return lambda laps: self.kernel(*arrays, laps)


def throughput(
    asks: str,
    lap: Callable[[Point], Lap],
    metric: str,
    unit: str,
    per_clk: Callable[[Machine, Point], float | None],
    why: str,
    constants: dict[str, dict[str, Value]],
    axes: tuple[Axis, ...] = (),
) -> Probe:
    """Rates `<metric>_per_s` of all threads together and `<metric>_per_clk` of one core, against what a core can do.

    per_clk     the bound: operations per core and clock at most, None where nobody can know; `why` says why
    constants   stem -> the axis values it is taken at; each gives <stem>_per_s (all cores) and <stem>_one_thread_per_s
    """

    def per_second(machine: Machine, point: Point) -> float | None:
        limit = per_clk(machine, point)
        return None if limit is None else limit * point["threads"] * host_cpu.fastest_hz(machine)

    def run(bench: HostBench, point: Point) -> list[Sample]:
        one, threads = lap(point), point["threads"]
        works = [one.work(bench) for _ in range(threads)]
        works[0](1)  # compiled by one thread, before several want it
        proof = (require_loop(one.kernel, one.contract),) if one.contract else ()
        timing = bench.together(works).flagged(*proof)
        everyone = timing.rate(f"{metric}_per_s", one.operations * threads)
        return [everyone, timing.per_clock(f"{metric}_per_clk", one.operations)]

    return Probe(
        asks=asks,
        archs=HOST,
        axes=(*axes, threads_axis(powers=False)),
        metrics=(
            Metric(f"{metric}_per_s", f"{unit}/s", Bound(f"{why}, at the highest clock", upper=per_second)),
            Metric(f"{metric}_per_clk", f"{unit}/clk/core", Bound(why, upper=per_clk)),
        ),
        run=run,
        constants=tuple(
            constant
            for stem, where in constants.items()
            for constant in (
                Constant(f"{stem}_per_s", f"{metric}_per_s", at_most("threads", **where)),
                Constant(f"{stem}_one_thread_per_s", f"{metric}_per_s", at_least("threads", **where)),
            )
        ),
    )


def latency_metrics(why: str, why_ns: str, least_clocks: float) -> tuple[Metric, ...]:
    """latency_ns and latency_cycles, at least so many clocks."""

    def least_ns(machine: Machine, _: Point) -> float:
        return least_clocks * 1e9 / host_cpu.fastest_hz(machine)

    return (
        Metric("latency_ns", "ns", Bound(why_ns, lower=least_ns)),
        Metric("latency_cycles", "cycles", Bound(why, lower=least_clocks)),
    )


def threads_axis(powers: bool = True) -> Axis:
    """1, the powers of two, and all usable cores; without `powers` 1 and all. It is this machine's own axis."""
    most = len(host_cpu.cores())
    between = {2**i for i in range(most.bit_length()) if 2**i < most} if powers else set()
    return Axis("threads", tuple(sorted({1, most} | between)), quick=tuple(sorted({1, most})))


def uniform(bench: HostBench, count: int, low: float, high: float) -> Any:
    """`count` f32 values in [low, high), 64-byte aligned, on pages of their own."""
    values = bench.empty(4 * count).array(np.float32, 0, 4 * count)
    values[:] = bench.rng.uniform(low, high, count)
    return values


def fma_per_clk(per_result: float = 1) -> Callable[[Machine, Point], float | None]:
    """A bound: results per core and clock, where each one takes this many multiply-adds."""
    return lambda machine, _: host_cpu.fma_lanes(machine) / per_result


def at_most(axis: str, **where: Value) -> Reducer:
    """The value at the largest `axis` value measured."""
    return _end(axis, -1, where)


def at_least(axis: str, **where: Value) -> Reducer:
    """The value at the smallest `axis` value measured."""
    return _end(axis, 0, where)


def _end(axis: str, end: int, where: dict[str, Value]) -> Reducer:
    def reduce(curves: Curves) -> Reduced:
        keep = [i for i, point in enumerate(curves.points) if point.matches(**where)]
        if not keep:
            raise NoValue(f"no point with {where} was measured")
        chosen = sorted(keep, key=lambda i: float(curves.points[i][axis]))[end]
        return Reduced(curves.values[:, chosen], (curves.points[chosen],))

    return reduce
