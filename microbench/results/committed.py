"""Which runs a shipped profile may come from: those that git knows, so that two checkouts write the same bytes."""

import subprocess
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from microbench import paths

GIT_SECONDS = 20


def shipped(files: Sequence[Path]) -> list[Path]:
    """Of these, the files that git's index holds.

    All of them where there is no git to ask: a copy of the tree on another machine, a folder that SMSCOPE_DATA names.
    """
    known = _index(paths.CHECKOUT) if paths.CHECKOUT and not paths.MOVED else None
    return [file for file in files if known is None or file.resolve() in known]


@cache
def _index(checkout: Path) -> frozenset[Path] | None:
    """The files below data/runs that git's index holds; None where git cannot say."""
    if not (checkout / ".git").exists():
        return None
    command = ["git", "-C", str(checkout), "ls-files", "-z", "data/runs"]
    try:
        listed = subprocess.run(command, capture_output=True, timeout=GIT_SECONDS)
    except (OSError, subprocess.TimeoutExpired):
        return None
    if listed.returncode:
        return None
    return frozenset(checkout / name for name in listed.stdout.decode().split("\0") if name)
