"""Two machines side by side, constant by constant; and one machine beside the literature."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from microbench.console import si
from microbench.published.verdict import Comparison
from microbench.results.profile import Profile, ProfileConstant

# Medians closer than this are one number; nvbench ties at the same distance.
TIE = 0.01

Standing = Literal["same", "higher", "lower", "only here", "only there"]


@dataclass(frozen=True)
class Pair:
    """One constant on both machines; `ratio` is there over here, `standing` how there stands to here."""

    constant: str
    unit: str
    here: float | None
    there: float | None
    ratio: float | None
    standing: Standing


def pairs(here: Profile, there: Profile) -> tuple[Pair, ...]:
    """Every constant of either profile, by name."""
    names = sorted({constant.name for profile in (here, there) for constant in profile.constants})
    return tuple(_pair(name, here, there) for name in names)


def _pair(name: str, here: Profile, there: Profile) -> Pair:
    if name not in there:
        one = here[name]
        return Pair(name, one.unit, one.value, None, None, "only here")
    other = there[name]
    if name not in here:
        return Pair(name, other.unit, None, other.value, None, "only there")
    one = here[name]
    ratio = other.value / one.value if one.value else None
    return Pair(name, one.unit, one.value, other.value, ratio, _standing(one, other))


def _standing(one: ProfileConstant, other: ProfileConstant) -> Standing:
    overlap = one.low <= other.high and other.low <= one.high
    if overlap or abs(other.value - one.value) <= TIE * abs(one.value):
        return "same"
    return "higher" if other.value > one.value else "lower"


def published_rows(compared: Sequence[Comparison]) -> list[tuple[str, ...]]:
    """One line for each constant that somebody has published: the range, its best row, and why the verdict is that."""
    lines: list[tuple[str, ...]] = []
    for found in compared:
        if found.published_low is None or found.published_high is None:
            continue
        by = si.scale(found.value, found.unit)
        ours = f"{si.digits(found.value / by.divisor)} {si.interval(found.low, found.high, found.value, found.unit)}"
        low, high = (si.digits(end / by.divisor) for end in (found.published_low, found.published_high))
        span = low if low == high else f"{low} to {high}"
        where = ", ".join(filter(None, (found.gpu, found.source, found.confidence)))
        lines.append((found.constant, by.unit, ours, span, str(found.rows), where, found.verdict, found.why))
    return lines
