"""Two profiles constant by constant: SAME, FASTER, SLOWER, or AMBIGUOUS where the campaigns do not tell."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from microbench.health.tolerance import less_is_better, tolerance
from microbench.results.profile import Profile
from microbench.results.profile_constant import ProfileConstant

Word = Literal["SAME", "FASTER", "SLOWER", "AMBIGUOUS", "ONLY HERE", "ONLY THERE"]
WORDS: tuple[Word, ...] = ("SLOWER", "FASTER", "AMBIGUOUS", "SAME", "ONLY HERE", "ONLY THERE")


@dataclass(frozen=True)
class Pair:
    """One constant on both machines: `ratio` is there over here, `standing` how there stands to here.

    `governed_by` says what beside the GPU has a part in the value, and is why it may repeat as badly as `tolerance`.
    """

    constant: str
    unit: str
    better: Literal["less", "more"]
    here: float | None
    there: float | None
    ratio: float | None
    tolerance: float
    standing: Word
    governed_by: str | None = None


def pairs(here: Profile, there: Profile) -> tuple[Pair, ...]:
    """Every constant of either profile, by name; a second method's where the other profile has it too."""
    names = sorted({constant.name for profile in (here, there) for constant in profile.constants})
    both = (name for name in names if (name in here and name in there) or not _is_twin(name, here, there))
    return tuple(_pair(name, here, there) for name in both)


def counts(of: Sequence[Pair]) -> dict[Word, int]:
    """How many constants each word stands for, the worst word first."""
    return {word: count for word in WORDS if (count := sum(pair.standing == word for pair in of))}


def _is_twin(name: str, here: Profile, there: Profile) -> bool:
    return (here if name in here else there)[name].method == "numba"


def _pair(name: str, here: Profile, there: Profile) -> Pair:
    one = (here if name in here else there)[name]
    better: Literal["less", "more"] = "less" if less_is_better(one) else "more"
    if name not in there:
        return Pair(name, one.unit, better, one.value, None, None, tolerance(one), "ONLY HERE")
    if name not in here:
        return Pair(name, one.unit, better, None, one.value, None, tolerance(one), "ONLY THERE")
    other = there[name]
    values = one.value, other.value, other.value / one.value
    return Pair(name, one.unit, better, *values, tolerance(one), stands(one, other), one.governed_by)


def stands(one: ProfileConstant, other: ProfileConstant) -> Word:
    """How `other` stands to `one`.

    SAME: the values lie within the tolerance, and neither's campaigns spread over more than twice of it. FASTER and
    SLOWER: they lie farther apart, and no campaign of one reached the other's. AMBIGUOUS: neither, or the smaller one
    is a lower bound.
    """
    allowed, ratio = tolerance(one), other.value / one.value
    if max(ratio, 1 / ratio) <= 1 + allowed:
        narrow = all(each.high - each.low <= 2 * allowed * each.value for each in (one, other))
        return "SAME" if narrow else "AMBIGUOUS"
    if one.low <= other.high and other.low <= one.high:
        return "AMBIGUOUS"
    if (one if ratio > 1 else other).only_at_least:  # it may be as much as the other's
        return "AMBIGUOUS"
    return "FASTER" if (ratio < 1) == less_is_better(one) else "SLOWER"
