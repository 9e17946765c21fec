"""What campaigns teach: data/campaigns/<gpu>/*.jsonl (attention.campaign.rows), of which only timings are read here.

A line is of one problem, with every configuration of ours that was timed and every peer. Campaigns judge choices, which
must not have seen them before: lines count from the `smscope profile` after them on (choose.learned), and those of a
set that was drawn from a freeze once that freeze has its verdict.
"""

import statistics
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from pydantic import BaseModel, ConfigDict, ValidationError

from attention.problem import AttentionProblem
from attention.timed import timing_faults
from attention.timed.observed import Observed
from attention.timed.timing import STEPS
from microbench import paths

FOLDER = "campaigns"
VERDICT = "verdict-"
SHORT = 12  # digits of a freeze's commit in the name of its verdict


class _Read(BaseModel):
    """What is read of a line, which has more."""

    model_config = ConfigDict(frozen=True, extra="ignore", allow_inf_nan=False)


class Tile(_Read):
    variant: str
    config: dict[str, int]
    cubin_sha256: str = ""
    seconds: tuple[float, ...] = ()
    failure: str | None = None


class Line(_Read):
    freeze: str | None = None
    problem: AttentionProblem
    lengths: tuple[int, ...] = ()
    used: tuple[int, ...] = ()
    l2_read: bool = False
    fetch_bytes: int = 256
    texts: dict[str, str]
    packages: dict[str, str] = {}
    flags: tuple[str, ...] = ()
    tiles: tuple[Tile, ...]

    @property
    def observed(self) -> Iterator[Observed]:
        """Of each candidate that was right the median of its samples."""
        for tile in self.tiles:
            if tile.seconds and tile.failure is None:
                seconds = statistics.median(tile.seconds)
                yield Observed(
                    tile.variant,
                    tile.config,
                    "forward",
                    self.problem,
                    *(seconds, seconds, seconds),
                    rows=self.lengths,
                    used=self.used,
                    text=self.texts.get(tile.variant, ""),
                    cubins=tuple(tile.cubin_sha256.split(STEPS)) if tile.cubin_sha256 else (),
                    flags=self.flags,
                    packages=self.packages,
                    l2_read=self.l2_read,
                    fetch_bytes=self.fetch_bytes,
                )


def observed(file: Path, size: int | None = None) -> tuple[list[tuple[int, Observed]], dict[int, str]]:
    """The timings of one file, each with its line's number, and what is wrong with the lines that are none.

    `size`: bytes of it that count, all where none is said.
    """
    sound: list[tuple[int, Observed]] = []
    wrong: dict[int, str] = {}
    judged = _judged(file.parent.parent)
    try:
        lines = file.read_bytes()[:size].decode("utf-8", errors="replace").split("\n")
    except OSError as error:
        return sound, {1: f"the file cannot be read ({error.strerror})"}
    for number, text in enumerate(lines, start=1):
        if not text.strip():
            continue
        try:
            line = Line.model_validate_json(text)
        except ValidationError as error:
            wrong[number] = timing_faults.why_unreadable(text, error).removesuffix(".")
            continue
        if line.freeze is None or line.freeze[:SHORT] in judged:
            sound += ((number, each) for each in line.observed)
    return sound, wrong


def files(gpu: str) -> list[Path]:
    """Where the lines of a machine lie, the shipped ones first."""
    folders = places(gpu, tuple(paths.data_roots()))
    return [file for folder in folders for file in sorted(folder.glob("*.jsonl"))]


def sizes(gpu: str) -> dict[str, int]:
    """The bytes of each file, by name."""
    return {file.name: file.stat().st_size for file in files(gpu)}


def verdicts(gpu: str) -> list[str]:
    """The freezes that have one, where there are lines of a machine: which of them count follows from these."""
    folders = places(gpu, tuple(paths.data_roots()))
    return sorted({name for folder in folders if folder.is_dir() for name in _judged(folder.parent)})


@cache
def places(gpu: str, roots: tuple[Path, ...]) -> tuple[Path, ...]:
    """The folders in which they would lie in these folders of data."""
    return tuple(root / FOLDER / gpu for root in roots)


def _judged(folder: Path) -> set[str]:
    """The first digits of each freeze whose verdict lies in a folder."""
    return {file.stem.removeprefix(VERDICT) for file in folder.glob(f"{VERDICT}*.json")}
