"""What people are told of constants in doubt: which one, why, and what to do. ProfileConstant.doubtful is the judge."""

from collections.abc import Sequence
from dataclasses import dataclass

from microbench.results.profile import Profile
from microbench.results.profile_constant import ProfileConstant

CAUSES = {
    "busy": "the machine was busy",
    "stolen": "the hypervisor gave its cores to others",
    "clock-moved": "its clock moved",
}
WIDE_WHY = "its interval"
SHOWN = 5


@dataclass(frozen=True)
class Doubt:
    """A constant that no choice may rest on, the probe that measures it, and why it is in doubt."""

    constant: str
    probe: str
    why: str

    def __str__(self) -> str:
        return f"{self.constant}: {self.why}"


def doubt(constant: ProfileConstant) -> Doubt | None:
    """Why no choice may rest on this constant; None where one may."""
    if not constant.doubtful:
        return None
    from microbench.console import si

    causes = " and ".join(CAUSES[flag] for flag in constant.disturbances)
    if not constant.wide:
        return Doubt(constant.name, constant.probe, f"measured while {causes}")
    by = si.scale(constant.value, constant.unit)
    low, value, high = (
        si.digits(number / by.divisor, constant.value / by.divisor)
        for number in (constant.low, constant.value, constant.high)
    )
    wide = f"{WIDE_WHY} {low} to {high} {by.unit} is too wide for {value}"
    return Doubt(constant.name, constant.probe, f"{wide}: {causes or 'its campaigns disagree'}")


def doubts(profile: Profile) -> tuple[Doubt, ...]:
    return tuple(found for constant in profile.constants if (found := doubt(constant)) is not None)


def told(found: Sequence[Doubt]) -> list[str]:
    """A sentence for each wide interval, one for all others of a cause; what a reader would skip is only counted."""
    wide = [each for each in found if each.why.startswith(WIDE_WHY)]
    others: dict[str, list[str]] = {}
    for each in found:
        if each not in wide:
            others.setdefault(each.why, []).append(each.constant)
    sentences = [f"In doubt: {each}." for each in wide[:SHOWN]]
    if len(wide) > SHOWN:
        others["too wide an interval"] = [each.constant for each in wide[SHOWN:]]
    for why, names in others.items():
        more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
        sentences.append(f"In doubt: {', '.join(names[:SHOWN])}{more}: {why}.")
    return sentences
