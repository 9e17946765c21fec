"""What a choice costs, from the lines of two campaigns: pure functions, the same on any machine.

mean of a configuration = the mean, over the campaigns, of its median seconds
best of a problem       = the lowest mean
regret of a pick        = its mean / the best - 1
floor                   = the regret of campaign 1's fastest in campaign 2: nobody can be asked to choose better
"""

import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from attention.campaign.posed import CLASSES, Class, Posed
from attention.campaign.rows import ProblemTiming
from attention.variant import Config
from microbench.errors import DataError

RESAMPLES, SEED = 10_000, 15
Pick = tuple[str, Config]  # a variant's path, and its configuration
Chooser = Callable[[Posed, Sequence[Pick]], Pick]  # of a problem and what was timed of it
Predictor = Callable[[Posed, Pick], float | None]


@dataclass(frozen=True)
class Judged:
    """One problem: of each configuration that every campaign timed, its seconds in each of them."""

    posed: Posed
    seconds: Mapping[Pick, tuple[float, ...]]

    @property
    def picks(self) -> tuple[Pick, ...]:
        return tuple(self.seconds)

    def mean(self, pick: Pick) -> float:
        """Seconds over all campaigns. Raises DataError where the configuration was not timed in each."""
        if pick not in self.seconds:
            raise DataError(f"{pick[0]} {pick[1]} was not timed on {self.posed} in every campaign.")
        return statistics.fmean(self.seconds[pick])

    @property
    def best(self) -> Pick:
        return min(self.seconds, key=self.mean)

    def regret(self, pick: Pick) -> float:
        """How much longer a configuration takes than the best: 0 is the best."""
        return self.mean(pick) / self.mean(self.best) - 1

    @property
    def floor(self) -> float:
        """The regret of the first campaign's fastest by the last one's seconds."""
        first = min(self.seconds, key=lambda pick: self.seconds[pick][0])
        last = {pick: seconds[-1] for pick, seconds in self.seconds.items()}
        return last[first] / min(last.values()) - 1

    def among(self, kernels: str) -> "Judged":
        """The same among the configurations of one kernel, or of all kernels of an architecture (`sm90a`)."""
        own = {pick: found for pick, found in self.seconds.items() if f"{pick[0]}/".startswith(f"{kernels}/")}
        return Judged(self.posed, own)


@dataclass(frozen=True)
class Regrets:
    """A chooser's regret of each problem, in the order of the problems."""

    name: str
    values: tuple[float, ...]

    @property
    def mean(self) -> float:
        return statistics.fmean(self.values)

    @property
    def worst(self) -> float:
        return max(self.values)


@dataclass(frozen=True)
class Errors:
    """|predicted / measured - 1| over all configurations: the mean, of each class, and the largest factor."""

    mean: float
    of_class: Mapping[Class, float]
    worst_factor: float
    count: int


def judged(*campaigns: Iterable[ProblemTiming]) -> tuple[Judged, ...]:
    """The problems that all campaigns timed, with the configurations that were right and timed in each.

    Where a campaign has several lines of a problem the last one counts. One whose L2 was read full and one whose L2 was
    written full have none in common.
    """
    every = [{(str(row.posed), row.l2_read): row for row in campaign} for campaign in campaigns]
    names = [name for name in every[0] if all(name in each for each in every)] if every else []
    return tuple(found for name in names if (found := _judged([each[name] for each in every])).seconds)


def choices(problems: Iterable[Judged], kernels: str = "") -> tuple[Judged, ...]:
    """The problems that leave a choice, of all configurations or among those of one kernel or architecture.

    One with a single configuration would add a regret of 0 to every chooser's mean.
    """
    every = (one.among(kernels) if kernels else one for one in problems)
    return tuple(each for each in every if len(each.seconds) > 1)


def regrets(problems: Sequence[Judged], choose: Chooser, name: str = "") -> Regrets:
    """What a chooser's picks cost. Raises DataError where it picks what was not timed."""
    return Regrets(name, tuple(each.regret(choose(each.posed, each.picks)) for each in problems))


def floor(problems: Sequence[Judged]) -> Regrets:
    return Regrets("floor", tuple(each.floor for each in problems))


def interval(one: Regrets, other: Regrets) -> tuple[float, float]:
    """Where 95 % of the differences of two means lie, one minus the other, over resampled problems.

    Below 0 throughout: `one` is better. The draw is seeded, so that every machine gives the same interval.
    """
    if len(one.values) != len(other.values):
        raise DataError(f"{one.name} and {other.name} were judged on other problems.")
    differences = np.subtract(one.values, other.values)
    drawn = np.random.default_rng(SEED).integers(0, len(differences), (RESAMPLES, len(differences)))
    low, high = np.quantile(differences[drawn].mean(axis=1), (0.025, 0.975))
    return float(low), float(high)


def errors(problems: Iterable[Judged], predict: Predictor) -> Errors:
    """How far predictions are from what was measured; what nothing predicts is left out of all but `count`."""
    found: list[tuple[Class, float]] = []
    for each in problems:
        for pick in each.picks:
            predicted = predict(each.posed, pick)
            if predicted is not None:
                found.append((each.posed.kind, predicted / each.mean(pick)))
    if not found:
        return Errors(float("nan"), {}, float("nan"), 0)
    of_class = {kind: [abs(ratio - 1) for held, ratio in found if held == kind] for kind in CLASSES}
    return Errors(
        statistics.fmean(abs(ratio - 1) for _, ratio in found),
        {kind: statistics.fmean(off) for kind, off in of_class.items() if off},
        max(max(ratio, 1 / ratio) for _, ratio in found),
        len(found),
    )


def _judged(rows: Sequence[ProblemTiming]) -> Judged:
    each = [{tile.pick: tile.median for tile in row.tiles if tile.seconds} for row in rows]
    shared = [pick for pick in each[0] if all(pick in one for one in each)]
    return Judged(rows[0].posed, {pick: tuple(one[pick] for one in each) for pick in shared})
