"""A value against what physics allows: the one rule that our own rows and published figures meet alike."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from microbench.machine.arch import Machine
from microbench.point import Point
from microbench.probe import Metric, breaks


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
