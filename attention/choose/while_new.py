"""Which kernel serves a shape while it is new: one that needs nothing built for each shape.

Torch's cuDNN builds a plan for every shape that it has not seen, 33 to 44 ms of the host (torch 2.11 on an H200,
data/attention/h200-sxm-141gb-new-lengths.json), where another kernel takes some tens of microseconds. A growing cache
has a new shape for every token, and calls it once a layer.
"""

from collections.abc import Callable
from typing import Any

from attention.choose.candidates import Candidate
from attention.choose.choose import Choice
from attention.choose.tuning import ranked
from attention.variant import by_path

Run = Callable[..., Any]
CALLS_OF_A_SHAPE = 64  # more than most models have layers


def while_new(choice: Choice) -> Candidate:
    """The candidate whose first calls of a shape take the least together: often the pick itself."""
    pick, first_seconds = choice.pick, by_path(choice.pick.variant).first_seconds
    seconds = _seconds(choice, pick)
    if seconds is None or not first_seconds:
        return pick
    limit = seconds + first_seconds / CALLS_OF_A_SHAPE
    for each in ranked(choice.tuning, choice.candidates) if choice.tuning else choice.candidates:  # the fastest first
        variant = by_path(each.variant)
        allowed = variant.fused and not variant.first_seconds and not (choice.fallback and each.owner == "smscope")
        if allowed and (takes := _seconds(choice, each)) is not None and takes <= limit:
            return each
    return pick


def _seconds(choice: Choice, candidate: Candidate) -> float | None:
    """Of a call: as timed where timings decided, else as predicted."""
    if choice.tuning is not None:
        found = choice.tuning.of(candidate)
        return None if found is None else found.seconds
    return None if candidate.prediction is None else candidate.prediction.seconds


class Tally:
    """How often a shape was called."""

    __slots__ = ("calls",)

    def __init__(self) -> None:
        self.calls = 0

    def settled(self) -> bool:
        """Count a call; whether the shape has been called so often that a plan for it pays."""
        self.calls += 1
        return self.calls > CALLS_OF_A_SHAPE


class Settling:
    """Runs a shape by one kernel while it is new, and by another from then on."""

    __slots__ = ("early", "late", "tally")

    def __init__(self, early: Run, late: Run) -> None:
        self.early, self.late, self.tally = early, late, Tally()

    def __call__(self, *given: Any) -> Any:
        """As either is called."""
        return (self.late if self.tally.settled() else self.early)(*given)
