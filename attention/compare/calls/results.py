"""The file boundary of whole calls: data/attention/<machine>-calls.jsonl, one call a line, append-only."""

import statistics
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from pydantic import Field, ValidationError

from attention.compare.calls.shapes import KINDS, Kind
from attention.problem import AttentionProblem
from microbench import paths
from microbench.files import Frozen, append

# What is promised of a hundred calls: torch's seconds over ours.
USUAL, SHARE, LEAST = 0.95, 0.95, 0.85


class CallTiming(Frozen):
    """One call by attention.sdpa and by torch's function: medians over `rounds` bursts of `burst` calls, in turns.

    `low` and `high` hold the middle half of the bursts. `largest_difference` is between both results.
    """

    schema_version: Literal[1] = 1
    gpu: str
    measured_utc: str
    run: str
    seed: int
    kind: Kind
    shape: tuple[int, int, int, int, int, int, int]  # B, Hq, Hkv, Sq, Skv, D, Dv
    dtype: str
    causal: bool
    variant: str  # that attention.explain names
    seconds: float = Field(gt=0)
    low: float = Field(gt=0)
    high: float = Field(gt=0)
    torch_seconds: float = Field(gt=0)
    torch_low: float = Field(gt=0)
    torch_high: float = Field(gt=0)
    rounds: int
    burst: int
    clock_mhz: float | None = None  # None in rows from before it was measured
    flags: tuple[str, ...] = ()  # who else had the cores: busy, stolen; clock-moved
    largest_difference: float
    threads: int
    load_average: float  # of the last minute, as the run began: this process is one of them, if at all
    packages: dict[str, str] = Field(default_factory=dict)
    commit: str | None = None
    dirty: bool | None = None

    @property
    def problem(self) -> AttentionProblem:
        return AttentionProblem(*self.shape, dtype=self.dtype, causal=self.causal)

    @property
    def ratio(self) -> float:
        """Torch's seconds over ours: above 1 is faster than torch."""
        return self.torch_seconds / self.seconds


@dataclass(frozen=True)
class Verdict:
    calls: int
    median: float
    least: float
    share_of_usual: float  # of calls that reach USUAL
    ours: int  # calls that our own kernel served

    @property
    def holds(self) -> bool:
        return self.share_of_usual >= SHARE and self.least >= LEAST


def verdict(timings: Iterable[CallTiming]) -> Verdict:
    rows = tuple(timings)
    ratios = [row.ratio for row in rows]
    usual = sum(ratio >= USUAL for ratio in ratios) / len(ratios)
    own = sum(not row.variant.rpartition("/")[2].startswith("torch_") for row in rows)
    return Verdict(len(rows), statistics.median(ratios), min(ratios), usual, own)


def by_kind(timings: Iterable[CallTiming]) -> dict[str, Verdict]:
    rows = tuple(timings)
    kinds = ((kind, [row for row in rows if row.kind == kind]) for kind in KINDS)
    return {kind: verdict(some) for kind, some in kinds if some} | {"all": verdict(rows)}


def path(gpu: str) -> Path:
    return paths.writable_data() / "attention" / f"{gpu}-calls.jsonl"


def write(rows: Iterable[CallTiming], gpu: str) -> Path:
    """Append all rows or none. Raises DataError."""
    append(path(gpu), *rows)
    return path(gpu)


def read(file: Path) -> tuple[tuple[CallTiming, ...], tuple[str, ...]]:
    """Every call of a file, and a sentence for each line that cannot be read."""
    found: list[CallTiming] = []
    problems: list[str] = []
    for number, line in enumerate(file.read_text(errors="replace").splitlines(), start=1):
        if not line.strip():
            continue
        try:
            found.append(CallTiming.model_validate_json(line))
        except ValidationError as error:
            why = error.errors()[0]["msg"]
            problems.append(f"{file.name}, line {number}: {why}; this line is left out, the rest is loaded.")
    return tuple(found), tuple(problems)
