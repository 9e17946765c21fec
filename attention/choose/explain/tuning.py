"""What an explanation says of `smscope tune`: the timings that decided, or what they would have to decide.

A prediction is taken for an interval: as wide as the constants that it rests on leave open, and no narrower than the
tie band. By published constants its fast end is what the terms allow, and its slow end what published forwards most
like it reach. What is not predicted may take any time.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

from rich.table import Table

from attention.choose.candidates import TIE_BAND, Candidate
from attention.choose.choose import Choice
from attention.choose.contenders import contenders
from attention.choose.prediction import Prediction
from attention.choose.published.ranking import PublishedRanking
from attention.choose.tuning import Tuning
from attention.problem import AttentionProblem
from microbench import paths
from microbench.console.si import counted, written
from microbench.results.profile import Profile


@dataclass(frozen=True)
class Interval:
    """Seconds at least and at most."""

    low: float
    high: float

    def overlaps(self, other: "Interval") -> bool:
        """Whether either may be the faster."""
        return self.low <= other.high and other.low <= self.high


ANY = Interval(0.0, math.inf)
Of = Callable[[Candidate], Interval]


def decided_by(choice: Choice) -> str:
    """A sentence, without a full stop, of the timings that decided a choice; empty where none did."""
    tuning = choice.tuning
    mine = tuning.of(choice.pick) if tuning is not None else None
    if tuning is None or mine is None:
        return ""
    next_best = next((each for each in tuning.measured if each != mine), None)
    beside = f"; {next_best} took {written(next_best.seconds, 's')}" if next_best is not None else ""
    return (
        f"`{paths.typed('tune')}` decided, on {tuning.measured_utc[:10]} under driver {tuning.driver} and torch "
        f"{tuning.torch}: {mine} took {written(mine.seconds, 's')} on {tuning.problem}{beside}"
    )


def would_decide(profile: Profile, problem: AttentionProblem, published: PublishedRanking | None = None) -> str:
    """A sentence, without a full stop, of what one `smscope tune` would decide; empty where it has nothing to time."""
    found = contenders(profile, problem)
    if not found.ours:
        return ""
    of = by_constants(profile) if published is None else by_published(problem, published)
    intervals = {each: of(each) for each in found.every}
    first = min(intervals, key=lambda each: (intervals[each].high, intervals[each].low))
    open_ = [each for each in found.every if each is not first and intervals[each].overlaps(intervals[first])]
    missing = f"no timing of this class by `{paths.typed('tune')}` is on file here"
    others = len(found.every) - 1 - len(open_)
    if not open_:
        return f"{missing}; one would time {_said(first)} and {others} more, none of whose intervals reaches its own"
    more = f", and time {counted(others, 'candidate')} more" if others else ""
    which = ", ".join(map(_said, (first, *open_)))
    return f"{missing}; one would decide between {which}, whose intervals overlap{more}"


def by_constants(profile: Profile) -> Of:
    """Intervals of predictions by the constants of a profile."""

    def of(candidate: Candidate) -> Interval:
        return ANY if candidate.prediction is None else _by_constants(profile, candidate.prediction)

    return of


def by_published(problem: AttentionProblem, ranking: PublishedRanking) -> Of:
    """Intervals by published constants: of ours, and of the kernel of torch's whose speed somebody published."""
    band = ranking.speed.band if ranking.speed is not None else None
    ours = {(each.variant, each.config): each.prediction for each in ranking.candidates}
    first = ranking.candidates[0].prediction if ranking.candidates else None

    def of(candidate: Candidate) -> Interval:
        if candidate.owner == "smscope":
            found = ours.get((candidate.variant, candidate.config))
            return ANY if found is None else Interval(found.seconds, found.seconds / band.low if band else math.inf)
        beside = ranking.beside_torch
        if candidate.variant != beside.kernel or beside.ratio is None or first is None:
            return ANY
        return _banded(first.seconds * beside.ratio, 1.0)

    return of


def _by_constants(profile: Profile, prediction: Prediction) -> Interval:
    names = {name for term in prediction.terms for name in term.constants if name in profile}
    used = [profile[name] for name in names]
    wide = [max(each.high / each.value, each.value / each.low) for each in used if each.low > 0 and each.value > 0]
    return _banded(prediction.seconds, max(wide, default=1.0))


def _banded(seconds: float, wide: float) -> Interval:
    wide = max(wide, 1.0 + TIE_BAND)
    return Interval(seconds / wide, seconds * wide)


def _said(candidate: Candidate) -> str:
    return f"{candidate.variant} ({candidate.config})" if candidate.config.values else candidate.variant


def timed(tuning: Tuning, pick: Candidate) -> Table:
    """All that was timed of the class, the fastest first."""
    table = Table(title=f"Timed by `{paths.typed('tune')}` on {tuning.problem}", title_justify="left")
    for heading in ("variant", "configuration", "time", "samples", ""):
        table.add_column(heading, overflow="fold")
    for each in tuning.measured:
        time = written(each.seconds, "s")
        table.add_row(each.variant, str(each.config), time, str(each.n), "picked" if each.is_of(pick) else "")
    return table
