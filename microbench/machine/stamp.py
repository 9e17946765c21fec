"""Which commit this code is: from git where the tree is a checkout, else from the stamp that `make` or a build left.

A tree copied without .git (to a GPU machine, into a wheel) keeps its stamp, microbench/commit.json. The stamp holds a
digest of the sources, so that a file edited after it was written makes the commit dirty, never wrong. An archive that
git made (a downloaded zip) carries its commit in microbench/archive.json, which `git archive` fills in.
Standard library only and no import of ours: the wheel's build runs this file by itself.
"""

import hashlib
import json
import subprocess
import sys
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
STAMP = "microbench/commit.json"
ARCHIVE = "microbench/archive.json"
PACKAGES = ("microbench", "attention")
SOURCES = (".py", ".cu", ".cuh", ".hpp")
GIT_SECONDS = 20


@dataclass(frozen=True)
class Commit:
    """`sha` in full, None where nobody knows. `dirty`: a source differs from that commit; None where unknown."""

    sha: str | None
    dirty: bool | None


@dataclass(frozen=True)
class Stamp:
    """The content of the stamp file; `sources` is the digest of the tree that it was written for."""

    sha: str
    dirty: bool
    sources: str


@cache
def commit() -> Commit:
    """The commit of the running code, asked once: what a process has imported is what it measures with."""
    return commit_of(ROOT)


def commit_of(root: Path) -> Commit:
    """The commit of the tree at `root`: git's answer, else the stamp's, else the archive's, else unknown."""
    found = from_git(root)
    if found is not None:
        return found
    stamp = read(root)
    if stamp is not None:
        return Commit(stamp.sha, stamp.dirty or digest(root) != stamp.sources)
    return Commit(_archived(root), None)


def write(root: Path) -> Path | None:
    """Leave the stamp of the checkout at `root`; None, and nothing written, where git cannot tell its commit."""
    found = from_git(root)
    if found is None or found.sha is None:
        return None
    file = root / STAMP
    text = json.dumps(asdict(Stamp(found.sha, bool(found.dirty), digest(root))), indent=2) + "\n"
    if not file.is_file() or file.read_text() != text:
        partial = file.with_suffix(".partial")
        partial.write_text(text)
        partial.replace(file)
    return file


def from_git(root: Path) -> Commit | None:
    """Git's answer, or None where `root` is no checkout of its own, has no commit yet, or git will not speak."""
    if not (root / ".git").exists():  # an installed package may lie inside someone else's checkout
        return None
    sha = _git(root, "rev-parse", "--verify", "HEAD")
    changed = _git(root, "status", "--porcelain", "--untracked-files=all", "--", *PACKAGES)
    if sha is None or changed is None:
        return None
    return Commit(sha.strip(), any(line.endswith(SOURCES) for line in changed.splitlines()))


def read(root: Path) -> Stamp | None:
    """The stamp of the tree at `root`, or None where there is none that can be read."""
    try:
        return Stamp(**json.loads((root / STAMP).read_text()))
    except (OSError, ValueError, TypeError):
        return None


def digest(root: Path) -> str:
    """SHA-256 over name and content of every source of both packages. Data is no source: measuring dirties nothing."""
    total = hashlib.sha256()
    files = (file for package in PACKAGES for file in (root / package).rglob("*") if file.suffix in SOURCES)
    for file in sorted(files, key=lambda file: file.relative_to(root).as_posix()):
        content = file.read_bytes()
        total.update(f"{file.relative_to(root).as_posix()}\0{len(content)}\0".encode())
        total.update(content)
    return total.hexdigest()


def _archived(root: Path) -> str | None:
    try:
        sha = str(json.loads((root / ARCHIVE).read_text())["sha"])
    except (OSError, ValueError, KeyError):
        return None
    return None if sha.startswith("$") else sha  # in a checkout, the placeholder itself


def _git(root: Path, *arguments: str) -> str | None:
    try:
        answer = subprocess.run(
            ["git", "-C", str(root), *arguments], capture_output=True, text=True, timeout=GIT_SECONDS, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return answer.stdout


if __name__ == "__main__":
    written = write(ROOT)
    where = written.relative_to(ROOT).as_posix() if written else "no stamp written: git names no commit here"
    sys.stdout.write(f"{where}\n")
