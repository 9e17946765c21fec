"""The freeze: a commit, and what the model was at it. Sets B and use are drawn from its hash, so the model comes first.

    data/campaigns/freeze-<12 digits>.json    commit, GPU, and the hash of every file that picks from constants rest on
    data/campaigns/verdict-<12 digits>.json   the same hashes when the verdict was reached, and its table

Between the two no hash may change. Where one does, another freeze draws another set B; every set B is reported.
"""

import hashlib
import subprocess
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TypeVar

from attention.campaign.rows import FOLDER
from microbench import files, paths
from microbench.errors import DataError, InputError
from microbench.files import Frozen

# What the model is made of, and what draws; the profile of the GPU that is judged stands beside them.
MODEL = (
    *("attention/choose/**/*.py", "attention/features/*.py", "attention/kernels/common/*.py"),
    *("attention/kernels/*/*/*/variant.py", "attention/kernels/*/*/*/arguments.py", "attention/kernels/*/*/*/asked.py"),
    *("attention/kernels/sm*/*.py", "attention/kernels/*/*/*/*.json"),
    *("attention/problem.py", "attention/variant.py", "attention/tile.py", "attention/feature.py", "attention/band.py"),
    *("attention/campaign/set_a.py", "attention/campaign/draw.py", "attention/campaign/posed.py"),
    *("attention/campaign/set_use.py", "attention/campaign/uses.py"),
    *("microbench/machine/arch.py", "microbench/results/profile.py", "microbench/results/profile_constant.py"),
)
AGAIN = "git has it as it was committed"
Kept = TypeVar("Kept", bound=Frozen)


class Freeze(Frozen):
    """`hashes`: SHA-256 by path in the checkout."""

    gpu: str
    commit: str
    hashes: dict[str, str]

    @property
    def short(self) -> str:
        return self.commit[:12]


class Verdict(Frozen):
    """What came of a set B: the files as they were then, the campaigns that were held against each other, the table."""

    freeze: str
    commit: str | None
    campaigns: tuple[int, ...]
    hashes: dict[str, str]
    lines: tuple[str, ...]


def hashes_of(root: Path, gpu: str) -> dict[str, str]:
    """The hashes of the model's files and of a GPU's profiles in a checkout."""
    patterns = (*MODEL, f"data/profiles/{gpu}.json", f"data/profiles/{gpu}--*.json")
    every = sorted({file for pattern in patterns for file in root.glob(pattern) if file.is_file()})
    return {file.relative_to(root).as_posix(): hashlib.sha256(file.read_bytes()).hexdigest() for file in every}


def freeze(root: Path, gpu: str) -> tuple[Freeze, Path]:
    """Write what HEAD is. Raises InputError where a file of the model is not as HEAD has it, or git does not answer."""
    found = hashes_of(root, gpu)
    if f"data/profiles/{gpu}.json" not in found:
        raise InputError(f"There is no profile of {gpu} to freeze.")
    commit = _git(root, "rev-parse", "HEAD")
    status = _git(root, "status", "--porcelain", "--ignored", "--", *found)
    if not commit or status is None:
        raise InputError("A freeze names a commit, and git names none here; freeze in a checkout.")
    ignored = {line.split()[-1] for line in status.splitlines() if line.startswith("!!")}
    changed = [name for line in status.splitlines() if (name := line.split()[-1]) not in ignored]
    if changed:
        raise InputError(f"{', '.join(changed)} is not as HEAD has it; commit, and freeze again.")
    if ignored:  # a board's own profile, which no other checkout would have
        raise InputError(f"{', '.join(sorted(ignored))} is in no commit; remove it, and freeze again.")
    frozen = Freeze(gpu=gpu, commit=commit, hashes=found)
    place = paths.writable_data() / FOLDER / f"freeze-{frozen.short}.json"
    files.put(place, frozen.model_dump_json(indent=1) + "\n")
    return frozen, place


def freezes(folder: Path | None = None) -> tuple[Freeze, ...]:
    """Every freeze on file, of whatever GPU. Raises DataError."""
    return tuple(_read(Freeze, file) for file in sorted(_of(folder, "freeze")))


def verdicts(folder: Path | None = None) -> tuple[Verdict, ...]:
    """Every verdict on file. Raises DataError."""
    return tuple(_read(Verdict, file) for file in sorted(_of(folder, "verdict")))


def named(commit: str) -> Freeze:
    """The freeze of a commit, by the begin of its hash. Raises InputError."""
    every = {each.commit: each for each in freezes()}
    return every[_one(commit, every)]


def timed(commits: Iterable[str | None], asked: str | None, what: str) -> str:
    """The commit that is named among those of timed lines, else the last of them. Raises InputError.

    `what`: which set was timed, and where, as an error says it.
    """
    there = list(dict.fromkeys(each for each in commits if each))
    if not there:
        raise InputError(f"No {what}; `smscope campaign` times one{paths.runs_elsewhere()}.")
    return there[-1] if asked is None else _one(asked, there, f" whose {what}")


def _one(asked: str, there: Iterable[str], whose: str = "") -> str:
    """The only commit that begins so. Raises InputError."""
    every = list(there)
    found = [each for each in every if each.startswith(asked)]
    if len(found) != 1:
        known = ", ".join(each[:12] for each in every) or "none yet"
        raise InputError(f"{asked!r} names no one freeze{whose} (there are: {known}).")
    return found[0]


def changed(frozen: Freeze, now: dict[str, str]) -> tuple[str, ...]:
    """The files that are others, gone, or new since a freeze."""
    both = frozen.hashes | now
    return tuple(name for name in sorted(both) if frozen.hashes.get(name) != now.get(name))


def require_unchanged(frozen: Freeze, root: Path) -> None:
    """Raise InputError where the model or the profile is no longer what was frozen."""
    others = changed(frozen, hashes_of(root, frozen.gpu))
    if others:
        raise InputError(
            f"Since the freeze of {frozen.short} these have changed: {', '.join(others)}. `smscope campaign --freeze` "
            "draws another set."
        )


def write(verdict: Verdict) -> Path:
    """Beside its freeze. Raises DataError where a verdict is there already, since every one is reported."""
    place = paths.writable_data() / FOLDER / f"verdict-{verdict.freeze[:12]}.json"
    if place.exists():
        raise DataError(f"{place.name} is there already; a freeze has one verdict.")
    files.put(place, verdict.model_dump_json(indent=1) + "\n")
    return place


def _of(folder: Path | None, kind: str) -> Iterator[Path]:
    return (folder or paths.writable_data() / FOLDER).glob(f"{kind}-*.json")


def _read(kind: type[Kept], file: Path) -> Kept:
    try:
        return kind.model_validate_json(file.read_bytes())
    except (OSError, ValueError) as error:
        raise DataError(f"{file.name} cannot be read ({error}); {AGAIN}.") from error


def _git(root: Path, *arguments: str) -> str | None:
    try:
        done = subprocess.run(["git", "-C", str(root), *arguments], capture_output=True, text=True, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip()
