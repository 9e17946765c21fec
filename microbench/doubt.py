"""What people are told of constants in doubt: which one, why, and what to do. ProfileConstant.doubtful is the judge."""

from collections.abc import Iterable
from dataclasses import dataclass

from microbench.profile import Profile, ProfileConstant
from microbench.report import si

CAUSES = {
    "busy": "the machine was busy",
    "stolen": "the hypervisor gave its cores to others",
    "clock-moved": "its clock moved",
}


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
    causes = " and ".join(CAUSES[flag] for flag in constant.disturbances)
    if not constant.wide:
        return Doubt(constant.name, constant.probe, f"measured while {causes}")
    by = si.scale(constant.value, constant.unit)
    low, value, high = (
        si.digits(number / by.divisor, constant.value / by.divisor)
        for number in (constant.low, constant.value, constant.high)
    )
    wide = f"its interval {low} to {high} {by.unit} is too wide for {value}"
    return Doubt(constant.name, constant.probe, f"{wide}: {causes or 'its campaigns disagree'}")


def doubts(profile: Profile) -> tuple[Doubt, ...]:
    """Every constant of the profile that is in doubt, in its order."""
    return tuple(found for constant in profile.constants if (found := doubt(constant)) is not None)


def told(found: Iterable[Doubt]) -> list[str]:
    """One sentence a cause: its constants by name, those with a wide interval each with its figures."""
    together: dict[str, list[str]] = {}
    sentences = []
    for each in found:
        if each.why.startswith("its interval"):
            sentences.append(f"In doubt: {each}.")
        else:
            together.setdefault(each.why, []).append(each.constant)
    for why, names in together.items():
        sentences.append(f"In doubt: {', '.join(names)}: {why}.")
    return sentences
