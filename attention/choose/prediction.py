"""What a prediction is: terms of phases, seconds, what bounds it; or why there is none."""

from dataclasses import dataclass
from operator import attrgetter
from typing import Annotated, NamedTuple

from pydantic import PlainSerializer


class Term(NamedTuple):  # a choice makes a hundred and more, and a frozen dataclass takes four times as long to make
    """One demand as time. `constant` of the profile had the value `rate`, in the constant's own unit.

    Of a chain: the sum of its `links`, with the constant of the longest.
    """

    term: str
    phase: str
    seconds: float
    constant: str
    rate: float
    links: tuple["Term", ...] = ()

    @property
    def constants(self) -> tuple[str, ...]:
        """All that it rests on; none where it is counted in instructions of a published rate."""
        return tuple(name for name in (self.constant, *(each.constant for each in self.links)) if name)


SECONDS = attrgetter("seconds")


@dataclass(frozen=True)
class Efficiency:
    """What `timings` of a variant on this machine showed: predicted over measured seconds, their median.

    `near`: they are of this very configuration, head dim and kind of problem, at some length.
    On the CPU also `overhead_seconds`, what a call takes before and after the work that is predicted.
    """

    value: float = 1.0
    timings: int = 0
    near: bool = False
    overhead_seconds: float = 0.0


@dataclass(frozen=True)
class Prediction:
    """Predicted seconds of one configuration: its phases' sum over its efficiency, and the overhead of a call.

    `bound_by` is the costliest term. `unhidden_seconds` is the sum of all terms, as if nothing overlapped: what tells
    equals apart.
    """

    seconds: float
    bound_by: str
    terms: tuple[Annotated[Term, PlainSerializer(Term._asdict)], ...]
    cycles: float | None
    efficiency: Efficiency
    unhidden_seconds: float


class Unpredicted(Exception):
    """The profile lacks what a prediction needs; the message says what. `doubtful` names a constant in doubt."""

    def __init__(self, why: str, doubtful: str | None = None) -> None:
        super().__init__(why)
        self.doubtful = doubtful
