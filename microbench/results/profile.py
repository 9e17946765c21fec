"""Records -> Profile: the constants of one machine, each with its interval and the runs it came from.

A profile is derived: `make profile` writes it again, byte for byte, from data/runs.
"""

import json
import math
import warnings
from collections.abc import Callable
from functools import reduce
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, ValidationError

from microbench import faults, paths
from microbench.errors import DataError, UnknownArch, UnknownGpu
from microbench.files import Frozen
from microbench.machine import arch
from microbench.machine.cpu import host_slug, stand_ins
from microbench.probe import REACHED, breaks
from microbench.results.record import DISTURBANCES

# What the second method's constants add to the first one's name.
TWIN_SUFFIX = "_numba"

# Beyond this factor an interval is too wide for a choice to rest on its value. A constant that is off by it makes a
# prediction off by as much, and the kernel picked by that runs at 1/1.18 = 0.85 of the better one's speed: the least
# that attention promises of any single call. Of the shipped profiles' constants, measured on machines that were idle,
# the worst lies at 1.11 (the share that a virtual machine has of its L3).
WIDE = 1.18

Label = Literal["measured", "lower bound"]
BELOW_DOCUMENTED = f"below {100 * REACHED:.0f} % of the documented rate"
SMALLEST, LARGEST = 1e-30, 1e30  # of a constant, in whatever unit


class ProfileConstant(Frozen):
    """A value, and the least and the most of `n` campaigns.

    'lower bound' where the sweep never went flat, or where the value is far below a documented rate.
    """

    name: str
    value: float
    low: float
    high: float
    unit: str
    n: int
    runs: tuple[str, ...]
    probe: str
    method: str
    label: Label = "measured"
    bound_lower: float | None = None
    bound_upper: float | None = None
    bound_why: str = "unknown"
    flags: tuple[str, ...] = ()

    @property
    def only_at_least(self) -> str | None:
        """Why it is a lower bound, or None."""
        if self.label == "measured":
            return None
        return f"it lies {BELOW_DOCUMENTED}" if BELOW_DOCUMENTED in self.flags else "its sweep was not flat at the end"

    @property
    def disturbances(self) -> tuple[str, ...]:
        """What else used the device while most of its rows were measured: 'busy', 'stolen', 'clock-moved'."""
        return tuple(flag for flag in self.flags if flag in DISTURBANCES)

    @property
    def wide(self) -> bool:
        """True where the campaigns disagree: not even half of them lie within WIDE of the value.

        The value is their median, so half of them lie between it and either end. The nearer end counts: one campaign
        that something disturbed moves one end as far as it likes, and hardly the median.
        """
        value, low, high = self.value, self.low, self.high
        if not 0 < low <= value <= high:
            return not low == value == high
        return high > WIDE * value and value > WIDE * low

    @property
    def doubtful(self) -> bool:
        """True where no choice may rest on it: it was measured beside other work, or its interval is wide."""
        return self.wide or bool(self.flags and self.disturbances)

    @property
    def fault(self) -> str | None:
        """Why it cannot be right: not positive, outside of its interval or of its physical bound."""
        if not (math.isfinite(self.value) and SMALLEST <= self.value <= LARGEST):
            return f"value is {self.value:g}, and no rate, size or latency is"
        if not self.low <= self.value <= self.high:
            return f"its interval [{self.low:g}, {self.high:g}] does not hold its value {self.value:g}"
        if breaks(self.value, self.bound_lower, self.bound_upper):
            return f"{self.value:g} {self.unit} breaks its bound ({self.bound_why})"
        return None


class Profile(Frozen):
    """Everything that was measured of one GPU, as constants by name."""

    schema_version: Literal[1, 2] = 2
    gpu: str
    name: str
    arch: str
    sm_count: int = Field(ge=1)
    clock_hz: float | None = Field(default=None, gt=0)
    dram_bytes: int = Field(default=0, ge=0)
    constants: tuple[ProfileConstant, ...] = Field(default=())

    @classmethod
    def load(cls, gpu: str) -> "Profile":
        """The profile of `gpu`, a slug such as 'h100-sxm-80gb', for a reader. Raises UnknownGpu, DataError.

        'host' is this CPU's own profile, or else that of another CPU, and a warning says whose.
        """
        return _load(gpu, read)

    @classmethod
    def advice(cls, gpu: str) -> "Profile":
        """The same for a choice: what is faulty in it is left out, and named by a DataWarning. Raises UnknownGpu."""
        return _load(gpu, sound)

    def __contains__(self, name: str) -> bool:
        return any(constant.name == name for constant in self.constants)

    def __getitem__(self, name: str) -> ProfileConstant:
        """The constant called `name`; KeyError names the machine and what to run."""
        for constant in self.constants:
            if constant.name == name:
                return constant
        raise KeyError(f"The profile of {self.gpu} holds no constant {name!r}; run `make bench` there.")

    @property
    def doubtful(self) -> tuple[ProfileConstant, ...]:
        """The constants that no choice may rest on."""
        return tuple(constant for constant in self.constants if constant.doubtful)

    def value(self, name: str) -> float:
        """The constant's value in its own unit."""
        return self[name].value

    def peak(self, name: str) -> ProfileConstant:
        """The measured peak of 'dram_bandwidth' (B/s), 'wgmma_bf16' (FLOP/s) and so on. Raises KeyError."""
        for unit in ("_flops_per_s", "_bytes_per_s", "_per_s", ""):
            if f"{name}{unit}" in self:
                return self[f"{name}{unit}"]
        raise KeyError(f"The profile of {self.gpu} holds no peak {name!r}; run `make bench` there, never guess.")


def _load(gpu: str, read_one: Callable[[Path], Profile | None]) -> Profile:
    faulty: list[Path] = []
    for slug in (gpu, *(stand_ins(available()) if gpu == "host" else ())):
        files = [root / "profiles" / f"{slug}.json" for root in paths.data_roots()]
        files = [file for file in files if file.is_file()]
        found = [profile for profile in map(read_one, files) if profile is not None]
        if found:
            _say_whose(gpu, slug)
            return reduce(_over, found)
        faulty += files
    if faulty:
        raise UnknownGpu(f"Nothing of the profile of {gpu} is sound; {_remedy(faulty[-1])}.")
    near = [name for name in available() if gpu and gpu.lower() in name]
    if near:
        raise UnknownGpu(f"No profile is called {gpu!r}; did you mean {', '.join(near)}?")
    known, bench = ", ".join(available()) or f"none yet{paths.moved()}", paths.typed("bench")
    raise UnknownGpu(f"No profile is called {gpu!r} (there are: {known}); run `{bench}` on that machine.")


def _remedy(file: Path) -> str:
    """What to do about a profile that cannot be read: only its runs, where they lie here, give it again."""
    if any((root / "runs" / file.stem).is_dir() for root in paths.data_roots()):
        return f"`{paths.typed('profile')}` writes it again from its runs"
    if file.is_relative_to(paths.PACKAGE):
        return f"delete {file}, or install smscope again"
    return f"delete {file}, or measure that machine again with `{paths.typed('bench')}`"


def _say_whose(gpu: str, slug: str) -> None:
    if gpu == "host" and slug not in (gpu, host_slug()):
        text = f"This CPU ({host_slug()}) has no profile, so {slug} stands for it; `make bench` measures this one."
        warnings.warn(text, stacklevel=3)


def _is_lesser(constant: ProfileConstant) -> bool:
    """True where it comes from a quick, short or unfinished run; derive.py flags those."""
    return any(flag in ("quick", "unfinished") or flag.endswith(" campaigns") for flag in constant.flags)


def _over(shipped: Profile, own: Profile) -> Profile:
    """The user's own profile over a shipped one, constant by constant; a quick one goes over none or its like only.

    So that a wheel's profile is not hidden by `run --quick --only` on the same kind of machine.
    """
    constants = {constant.name: constant for constant in shipped.constants}
    for constant in own.constants:
        there = constants.get(constant.name)
        if there is None or _is_lesser(there) or not _is_lesser(constant):
            constants[constant.name] = constant
    merged = tuple(constants[name] for name in sorted(constants))
    return own.model_copy(update={"constants": merged})


def read(file: Path) -> Profile:
    """Load one profile file. Raises DataError."""
    try:
        return _of_today(Profile.model_validate_json(file.read_bytes()))
    except (OSError, ValidationError) as error:
        why = faults.first_of(error) if isinstance(error, ValidationError) else error.strerror or str(error)
        raise DataError(f"{file.name} is no readable profile ({why}); {_remedy(file)}.") from error


def _of_today(profile: Profile) -> Profile:
    """In version 1 one disturbed row flagged a constant, which says too little for a doubt: its interval judges."""
    if profile.schema_version == 2:
        return profile
    constants = (
        constant.model_copy(
            update={"flags": tuple(f"{flag} in some rows" if flag in DISTURBANCES else flag for flag in constant.flags)}
        )
        for constant in profile.constants
    )
    return profile.model_copy(update={"schema_version": 2, "constants": tuple(constants)})


def judged(file: Path) -> tuple[Profile | None, tuple[str, ...]]:
    """What is sound in a profile file, None where nothing is, and a sentence for each field that is not."""
    try:
        told: Any = json.loads(file.read_bytes())
    except (OSError, ValueError, RecursionError) as error:
        return None, (f"it is no readable profile ({error})",)
    if not isinstance(told, dict):
        return None, ("it is no JSON object",)
    listed = told.get("constants", [])
    try:
        profile = Profile.model_validate({**told, "constants": ()})
        arch.by_name(profile.arch)
    except ValidationError as error:
        return None, (faults.first_of(error),)
    except UnknownArch as error:
        return None, (f"arch: {error}",)
    if profile.gpu != file.stem:
        return None, (f"gpu: it is of {profile.gpu!r}",)
    if not isinstance(listed, list):
        return profile, ("constants: they are no list",)
    sound: dict[str, ProfileConstant] = {}
    problems: list[str] = []
    for number, each in enumerate(listed):
        name = f"constants.{number}"
        try:
            constant = ProfileConstant.model_validate(each)
        except ValidationError as error:
            problems.append(f"{name}.{faults.first_of(error)}")
            continue
        if constant.fault or constant.name in sound:
            problems.append(f"{name}, {constant.name}: {constant.fault or 'it is there twice'}")
        else:
            sound[constant.name] = constant
    return _of_today(profile.model_copy(update={"constants": tuple(sound.values())})), tuple(problems)


def sound(file: Path) -> Profile | None:
    """What is sound in a profile file; a DataWarning names the rest."""
    profile, problems = judged(file)
    faults.leave_out(file, problems)
    return profile


def advising() -> list[Profile]:
    """Every profile on this machine that has something sound in it."""
    found = []
    for gpu in available():
        try:
            found.append(Profile.advice(gpu))
        except UnknownGpu:
            continue
    return found


def available() -> list[str]:
    """The slugs of every profile on this machine."""
    return sorted({file.stem for root in paths.data_roots() for file in (root / "profiles").glob("*.json")})
