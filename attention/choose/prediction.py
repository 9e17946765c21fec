"""What a prediction is: terms of phases, seconds, what bounds it; or why there is none."""

from collections.abc import Callable
from dataclasses import dataclass, fields
from operator import attrgetter
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

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

    def twice(self) -> "Term":
        """What it takes in two launches."""
        return self._replace(seconds=2 * self.seconds, links=tuple(each.twice() for each in self.links))

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


Account = tuple[str, tuple[Term, ...]]  # what bounds a prediction, and its terms


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

    @classmethod
    def accounted(
        cls,
        seconds: float,
        account: Callable[[], Account],
        cycles: float | None,
        efficiency: Efficiency,
        unhidden_seconds: float,
    ) -> "Prediction":
        """One whose `account` is asked when somebody reads it: a choice compares seconds, and explains one pick."""
        found = cls.__new__(cls)
        found.__dict__.update(
            seconds=seconds,
            cycles=cycles,
            efficiency=efficiency,
            unhidden_seconds=unhidden_seconds,
            _account=account,
        )
        return found

    def twice(self) -> "Prediction":
        """Of two such launches, one after the other."""

        def account() -> Account:
            return self.bound_by, tuple(each.twice() for each in self.terms)

        cycles = None if self.cycles is None else 2 * self.cycles
        return Prediction.accounted(2 * self.seconds, account, cycles, self.efficiency, 2 * self.unhidden_seconds)

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            """What the account says, where nobody has asked it yet: other fields are always there."""
            account = self.__dict__.get("_account")
            if account is None or name not in ("bound_by", "terms"):
                raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
            bound_by, terms = account()
            self.__dict__.update(bound_by=bound_by, terms=terms)
            return self.__dict__[name]

    def __getstate__(self) -> dict[str, Any]:
        """The fields alone: an account is no data."""
        return {each.name: getattr(self, each.name) for each in fields(self)}


class Unpredicted(Exception):
    """The profile lacks what a prediction needs; the message says what. `doubtful` names a constant in doubt."""

    def __init__(self, why: str, doubtful: str | None = None) -> None:
        super().__init__(why)
        self.doubtful = doubtful
