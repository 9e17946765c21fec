"""A value against what physics allows: the one rule that our own rows and published figures meet alike."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from microbench.machine.arch import Limits, Machine
from microbench.point import Point
from microbench.probe import Metric, Probe, SassContract, breaks

SLOT_LANES = 128  # four schedulers, a warp each
MOST_OVERHEAD = 0.01
LOOP_LIMITED = f"loop overhead above {MOST_OVERHEAD:.0%} of the issue slots"


def limit(pick: Callable[[Limits], float]) -> Callable[[Machine, Point], float | None]:
    """A bound that the architecture's limits give; None for a machine without them."""
    return lambda machine, _: pick(machine.arch.limits) if machine.arch.limits else None


@dataclass(frozen=True)
class Held:
    """A value held against a metric's bound. `why` is the sentence that refuses it, None where it is possible."""

    lower: float | None
    upper: float | None
    status: Literal["ok", "violated", "unknown"]
    why: str | None


def held(metric: Metric, value: float, machine: Machine, point: Point) -> Held:
    """`value`, in the metric's unit, against its bound at this machine and point."""
    lower, upper = metric.bound.at(machine, point)
    if lower is None and upper is None:
        return Held(lower, upper, "unknown", None)
    if not breaks(value, lower, upper):
        return Held(lower, upper, "ok", None)
    limits = ", ".join(
        f"{side} {limit:g}" for side, limit in (("at least", lower), ("at most", upper)) if limit is not None
    )
    why = f"{value:g} {metric.unit} breaks its bound ({limits} {metric.unit}: {metric.bound.why})"
    return Held(lower, upper, "violated", why)


def loosest(metric: Metric, value: float, machine: Machine, points: Sequence[Point]) -> Held:
    """The same at the one of these points that allows most: what holds of a value whose point nobody tells."""
    every = [held(metric, value, machine, point) for point in points]
    return next((one for one in every if one.status != "violated"), every[0])


def loop_overhead(contract: SassContract, results_per_clk_sm: float) -> float:
    """The share of its time that a loop of operations of this rate loses to its own instructions.

    Four schedulers issue a warp's instruction each clock: an operation of 128 results a clock takes every slot, and one
    of 16 leaves seven of eight free, in which the loop's own run beside it. FFMA of 64 a trip lost 3 of 67 slots, and
    gave 122.3 for 128.
    """
    if contract.region != "loop":
        return 0.0
    operations = sum(op.count for op in contract.ops)
    beside = 1 + sum(overhead.least for overhead in contract.overhead)  # the branch, and what is declared
    busy = operations * SLOT_LANES / results_per_clk_sm
    return 1 - busy / max(busy, operations + beside)


def limited_by_its_loop(probe: Probe, metric: Metric, machine: Machine, point: Point) -> bool:
    """True of a documented rate in results a clock of which the kernel's loop takes more than MOST_OVERHEAD."""
    if not metric.bound.documented or metric.unit != "results/clk/SM" or probe.builds is None:
        return False
    rate = metric.bound.at(machine, point)[1]
    return rate is not None and any(loop_overhead(b.contract, rate) > MOST_OVERHEAD for b in probe.builds(point))
