"""Other constants for the same model: what each is worth shows in what a choice by others costs."""

import re
from collections.abc import Callable, Iterable

from microbench.results.profile import Profile
from microbench.results.profile_constant import LARGEST, PUBLISHED, SMALLEST, ProfileConstant

# What costs the more the larger it is: cycles of a line, as against lines a cycle, and what is written back.
COST = re.compile(r"_(ns|cycles(_per_(line|way))?)$|_write_back_")


def scaled(profile: Profile, name: str, factor: float) -> Profile:
    """The profile with one constant multiplied."""
    return _mapped(profile, lambda each: _with(each, each.value * factor) if each.name == name else each)


def ones(profile: Profile) -> Profile:
    """The profile with every constant 1, whatever its unit."""
    return _mapped(profile, lambda each: _with(each, 1.0))


def filled(published: Profile, judged: Profile) -> Profile:
    """Others' constants as a profile of the GPU that is judged: its SMs, and ideal values where they have none.

    A rate's ideal is its physical bound, and without one it costs nothing; a cost's likewise, from below.
    """
    known = {each.name: each for each in published.constants}
    constants = tuple(_own(known.get(each.name), each) for each in judged.constants)
    clock = known.get("sm_clock_mhz")
    clock_hz = published.clock_hz or (clock.value * 1e6 if clock else judged.clock_hz)
    return judged.model_copy(update={"constants": constants, "clock_hz": clock_hz})


def _own(given: ProfileConstant | None, judged: ProfileConstant) -> ProfileConstant:
    if given is not None:
        return _with(given, given.value)
    if COST.search(judged.name):
        return _with(judged, judged.bound_lower or SMALLEST, PUBLISHED)
    return _with(judged, judged.bound_upper or LARGEST, PUBLISHED)


def _with(constant: ProfileConstant, value: float, label: str = "") -> ProfileConstant:
    """With another value, which is not in doubt."""
    changes = {"value": value, "low": value, "high": value, "flags": (), "label": label or constant.label}
    return constant.model_copy(update=changes)


def _mapped(profile: Profile, change: Callable[[ProfileConstant], ProfileConstant]) -> Profile:
    changed: Iterable[ProfileConstant] = map(change, profile.constants)
    return profile.model_copy(update={"constants": tuple(changed)})
