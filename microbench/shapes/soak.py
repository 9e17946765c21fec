"""Seconds of one product, which the power limit answers: a probe's metrics, its constants, and its run.

What is called sustained has been soaked so; other rates are bursts of milliseconds.
"""

from collections.abc import Callable

from microbench.measure.launch import Bench, Launch
from microbench.measure.soak import samples
from microbench.probe import Axis, Bound, Constant, Metric, Sample
from microbench.results.curves import at
from microbench.shapes.chain import Cycles
from microbench.shapes.matrix import LAUNCH_S, rate_metrics

SECONDS = 5
CAMPAIGNS = 1
# Twenty seconds of a suite; a quick run has none.
INPUTS = Axis("inputs", ("normal", "zeros"), quick=())


def soaked(bench: Bench, launch: Callable[[int], Launch], flops_a_trip: float, flops_per_clk_sm: float) -> list[Sample]:
    """FLOP/s of the whole chip, W and °C, each second a value. `launch(trips)` is one block on every SM."""
    clock_hz = bench.machine.clock_hz or 1e9
    trips = bench.trips(round(LAUNCH_S * clock_hz * flops_per_clk_sm / flops_a_trip))
    whole = launch(trips)
    return samples(bench.soak(whole, SECONDS), flops_a_trip * trips * whole.grid)


def soak_metrics(why: str, flops: float, cycles: Cycles) -> tuple[Metric, ...]:
    """sustained_flops_per_s, at most what a burst may give, and the board's power and temperature meanwhile."""
    burst = rate_metrics(why, lambda _: flops, cycles, lambda _: True)[1]
    return (
        Metric("sustained_flops_per_s", burst.unit, burst.bound, "power"),
        Metric("power_w", "W", Bound("no board is supplied with 2 kW", lower=1.0, upper=2000.0), "power"),
        Metric("temperature_c", "°C", Bound("a chip shuts itself down before", lower=1.0, upper=125.0), "power"),
    )


def soak_constants(stem: str) -> tuple[Constant, ...]:
    """<stem>_sustained_flops_per_s and <stem>_sustained_power_w on N(0, 1); with _zeros after the stem on zeros."""
    return tuple(
        Constant(f"{stem}{label}_sustained_{unit}", metric, at(inputs=inputs))
        for label, inputs in (("", "normal"), ("_zeros", "zeros"))
        for unit, metric in (("flops_per_s", "sustained_flops_per_s"), ("power_w", "power_w"))
    )
