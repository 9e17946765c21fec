"""What choosing costs by other constants, by no constants, and by each constant halved and doubled."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache

from attention.campaign import choosers
from attention.campaign.regret import Chooser, Judged, Pick, Regrets, choices, floor, interval, regrets
from attention.campaign.table import FA4, MEASURED, ONE_TILE, ONES, Other
from attention.choose import constants
from attention.choose.warpgroups import predicted as warpgroups
from attention.choose.warps import predicted as warps
from microbench.results.profile import Profile
from notebooks.ladders import set_a
from smscope.regretting import other_constants

FACTORS = (0.5, 2.0)
FLOOR, OTHER_BOARD = "floor: the first campaign's fastest", "measured on the other board"
# Whose constants, as `smscope regret` names them and as the figure does. Of GPUs that nobody measured two are enough.
PUBLISHED = {
    "published and data sheet": "published of this GPU",
    "published of a100": "published of the A100",
    "published of b200": "published of the B200",
}
# They set the clock and an interval, and stand in no term.
BESIDE_TERMS = (warpgroups.BURST, warpgroups.INTERVAL, warps.BURST)


@dataclass(frozen=True)
class Cost:
    """What a way to choose costs on a set of problems."""

    name: str
    regrets: Regrets
    against: tuple[float, float]  # 95 % of the measured constants' mean minus this one's

    @property
    def is_measured(self) -> bool:
        return self.name == MEASURED

    @property
    def interval(self) -> tuple[float, float]:
        """Of the mean itself, over resampled problems."""
        return interval(self.regrets, Regrets("none", (0.0,) * len(self.regrets.values)))


@cache
def costs(gpu: str, variant: str = "") -> tuple[Cost, ...]:
    """Of every way to choose among all our kernels' configurations, or one kernel's, on the problems of set a."""
    mine = choices(set_a.problems(gpu), variant)
    profile = Profile.load(gpu)
    measured = regrets(mine, choosers.by_constants(profile))
    found = [(FLOOR, floor(mine)), (MEASURED, measured)]
    found += [(name, regrets(mine, by)) for name, by in _others(profile, mine)]
    return tuple(Cost(name, each, interval(measured, each)) for name, each in found)


def measured_of(found: Iterable[Cost]) -> Cost:
    return next(each for each in found if each.is_measured)


def _others(profile: Profile, mine: tuple[Judged, ...]) -> Iterator[tuple[str, Chooser]]:
    for other in _constants(profile.gpu):
        if other.name in PUBLISHED:
            yield PUBLISHED[other.name], choosers.by_constants(other.profile)
        elif other.name.startswith("measured on "):
            yield OTHER_BOARD, choosers.by_constants(other.profile)
    yield ONES, choosers.by_constants(constants.ones(profile))
    yield FA4, choosers.flash_attention_4
    yield ONE_TILE, choosers.one_tile_each(mine)


@cache
def _constants(gpu: str) -> tuple[Other, ...]:
    return tuple(other_constants(Profile.load(gpu)))


@dataclass(frozen=True)
class Worth:
    """One constant, halved and doubled: the mean regret of each, and how many picks change."""

    name: str
    regrets: tuple[float, float]
    changed: tuple[int, int]

    def most(self, measured: float) -> float:
        """How far the mean regret moves at most."""
        return max(abs(each - measured) for each in self.regrets)


@cache
def worths(gpu: str) -> tuple[Worth, ...]:
    """Every constant that the model reads, what moves the mean regret most first."""
    profile, mine = Profile.load(gpu), choices(set_a.problems(gpu))
    picks = _picks(profile, mine)
    names = dict.fromkeys((*choosers.used(profile, mine), *BESIDE_TERMS))
    found = [_worth(profile, mine, picks, name) for name in names]
    measured = _mean(mine, picks)
    return tuple(sorted(found, key=lambda each: (-each.most(measured), -sum(each.changed), each.name)))


def worth_of(found: Iterable[Worth], name: str) -> Worth | None:
    """None where no kernel that was timed on the GPU reads the constant."""
    return next((each for each in found if each.name == name), None)


def worth_cells(found: Iterable[Worth], name: str) -> tuple[str, ...]:
    """Mean regrets, and how many picks change, of a constant halved and doubled."""
    worth = worth_of(found, name)
    if worth is None:
        return ("not read",) * len(FACTORS)
    return tuple(f"{each:.2%} ({many})" for each, many in zip(worth.regrets, worth.changed, strict=True))


def _worth(profile: Profile, mine: tuple[Judged, ...], picks: tuple[Pick, ...], name: str) -> Worth:
    halved, doubled = (_picks(constants.scaled(profile, name, factor), mine) for factor in FACTORS)
    changed = [sum(one != other for one, other in zip(picks, each, strict=True)) for each in (halved, doubled)]
    return Worth(name, (_mean(mine, halved), _mean(mine, doubled)), (changed[0], changed[1]))


def _picks(profile: Profile, mine: tuple[Judged, ...]) -> tuple[Pick, ...]:
    choose = choosers.by_constants(profile)
    return tuple(choose(each.posed, each.picks) for each in mine)


def _mean(mine: tuple[Judged, ...], picks: tuple[Pick, ...]) -> float:
    return sum(each.regret(pick) for each, pick in zip(mine, picks, strict=True)) / len(mine)
