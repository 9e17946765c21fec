"""Records -> Profile: the constants of one machine, each with its interval and the runs it came from.

A profile is derived: `make profile` writes it again, byte for byte, from data/runs. A kind of GPU has
profiles/<kind>.json, which ships; `make bench` writes profiles/<kind>--<board>.json of the board that it measured. Who
asks for a kind gets the kind's, else that of a board of it.
"""

import json
import warnings
from collections.abc import Callable
from functools import reduce
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, ValidationError

from microbench import faults, paths
from microbench.errors import DataError, DataWarning, UnknownArch, UnknownGpu
from microbench.files import Frozen
from microbench.machine import arch
from microbench.machine.cpu import host_slug, stand_ins
from microbench.results.profile_constant import ProfileConstant
from microbench.results.record import DISTURBANCES

# Between a kind of GPU and a board of it, in the name of a file.
BOARD_MARK = "--"


class Profile(Frozen):
    """Everything that was measured of one kind of GPU, as constants by name.

    board   8 digits of the UUID's hash where it is of one board alone; None of a kind, and of a CPU
    """

    schema_version: Literal[1, 2] = 2
    gpu: str
    board: str | None = None
    name: str
    arch: str
    sm_count: int = Field(ge=1)
    clock_hz: float | None = Field(default=None, gt=0)
    dram_bytes: int = Field(default=0, ge=0)
    constants: tuple[ProfileConstant, ...] = Field(default=())

    @classmethod
    def load(cls, gpu: str) -> "Profile":
        """The profile of `gpu`, a slug such as 'h100-sxm-80gb', for a reader. Raises UnknownGpu, DataError.

        'h100-sxm-80gb--1a2b3c4d' is of one board alone. 'host' is this CPU's own profile, or else that of another CPU,
        and a warning says whose.
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
    def stem(self) -> str:
        """What its file is called, and what a person types for it."""
        return stem_of(self.gpu, self.board)

    @property
    def doubtful(self) -> tuple[ProfileConstant, ...]:
        """The constants that no choice may rest on."""
        return tuple(constant for constant in self.constants if constant.doubtful)

    def value(self, name: str) -> float:
        """The constant's value in its own unit."""
        return self[name].value

    def peak(self, name: str) -> ProfileConstant:
        """The measured peak of 'dram_bandwidth' (B/s), 'wgmma_bf16' (FLOP/s) and so on. Raises KeyError."""
        for unit in ("_burst_flops_per_s", "_flops_per_s", "_bytes_per_s", "_per_s", ""):
            if f"{name}{unit}" in self:
                return self[f"{name}{unit}"]
        bench = paths.typed("bench")
        raise KeyError(f"The profile of {self.gpu} holds no peak {name!r}; `{bench}` there measures it, never guess.")


Read = Callable[[Path], Profile | None]


def _load(gpu: str, read_one: Read) -> Profile:
    """The profile called `gpu`, each of its files read by `read_one`. Raises UnknownGpu, and what `read_one` raises."""
    faulty: list[Path] = []
    for slug in (gpu, *(stand_ins(available()) if gpu == "host" else ())):
        files = _files(slug) or sorted(path for root in paths.data_roots() for path in _of_boards(root, slug))[:1]
        found = [profile for profile in map(read_one, files) if profile is not None]
        if found:
            _say_whose(gpu, slug)
            return reduce(_over, found)
        faulty += files
    if faulty:
        raise UnknownGpu(f"Nothing of the profile of {gpu} is sound; {_remedy(faulty[-1])}.")
    if (paths.SHIPPED / "published" / "profiles" / f"{gpu.lower()}.json").is_file():
        raise UnknownGpu(
            f"{gpu} is a published profile, of what others measured, where a measured one is asked for; "
            f"`smscope explain --gpu {gpu.lower()}` reads it."
        )
    near = [name for name in available() if gpu and gpu.lower() in name]
    if near:
        raise UnknownGpu(f"No profile is called {gpu!r}; did you mean {', '.join(near)}?")
    known, bench = ", ".join(available()) or f"none yet{paths.moved()}", paths.typed("bench")
    raise UnknownGpu(f"No profile is called {gpu!r} (there are: {known}); run `{bench}` on that machine.")


def with_board(kind: Profile, board: str) -> Profile:
    """A kind's profile with what was measured of one board of it in the place of the kind's; as it is without that."""
    found = [each for each in map(sound, _files(stem_of(kind.gpu, board))) if each is not None]
    return reduce(_over, found, kind)


def stem_of(gpu: str, board: str | None) -> str:
    """What the file of a kind's profile is called, or of one board of it."""
    return f"{gpu}{BOARD_MARK}{board}" if board else gpu


def of_kind(gpu: str) -> bool:
    """Whether a kind of GPU has a profile of its own here, beside those of single boards."""
    return bool(_files(gpu))


def _files(stem: str) -> list[Path]:
    files = [root / "profiles" / f"{stem}.json" for root in paths.data_roots()]
    return [file for file in files if file.is_file()]


def _of_boards(root: Path, gpu: str) -> list[Path]:
    return list((root / "profiles").glob(f"{gpu}{BOARD_MARK}*.json"))


def _remedy(file: Path) -> str:
    """What to do about a profile that cannot be read: only its runs, where they lie here, give it again."""
    if any((root / "runs" / file.stem.partition(BOARD_MARK)[0]).is_dir() for root in paths.data_roots()):
        return f"`{paths.typed('profile')}` writes it again from its runs"
    if file.is_relative_to(paths.PACKAGE):
        return f"delete {file}, or install smscope again"
    return f"delete {file}, or measure that machine again with `{paths.typed('bench')}`"


def _say_whose(gpu: str, slug: str) -> None:
    own, bench = host_slug(), paths.typed("bench")
    if gpu == "host" and slug not in (gpu, own):
        text = f"This CPU ({own}) has no profile, so {slug} stands for it; `{bench}` measures this one."
        warnings.warn(text, DataWarning, stacklevel=3)


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
    if profile.stem != file.stem:
        return None, (f"gpu: it is of {profile.stem!r}",)
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
    """The slugs of every machine that has a profile here."""
    stems = {file.stem for root in paths.data_roots() for file in (root / "profiles").glob("*.json")}
    return sorted({stem.partition(BOARD_MARK)[0] for stem in stems})


def _over(shipped: Profile, own: Profile) -> Profile:
    """A board's own profile, or the user's, over a shipped one, constant by constant; a quick one over its like only.

    So that a shipped profile is not hidden by `run --quick --only` on the same kind of machine.
    """
    constants = {constant.name: constant for constant in shipped.constants}
    for constant in own.constants:
        there = constants.get(constant.name)
        if there is None or there.lesser or not constant.lesser:
            constants[constant.name] = constant
    merged = tuple(constants[name] for name in sorted(constants))
    return own.model_copy(update={"constants": merged})
