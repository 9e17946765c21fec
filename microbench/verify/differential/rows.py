"""What a GPU and the emulator made of the same inputs: data/verification/differential-<gpu>.jsonl, one row a case."""

from pathlib import Path
from typing import Literal

from microbench import paths
from microbench.files import Frozen
from microbench.files import read as read_rows


class DifferentialRow(Frozen):
    """One wrapper in one layout on one kind of values."""

    gpu: str
    driver: str
    wrapper: str
    layout: str
    values: Literal["integers", "normal", "bits"]
    seeds: int
    comparison: Literal["exact", "tolerance"]
    tolerance: float  # absolute up to values of 1, relative above
    differing: int | None  # results beyond the tolerance; None where it failed
    worst_error: float | None  # None where it failed, or a result is no number
    verdict: Literal["agrees", "differs", "failed"]
    reason: str | None = None  # of a failure: the GPU's or the driver's own words


def path(gpu: str) -> Path:
    """Where the committed rows of a GPU lie."""
    return paths.SHIPPED / "verification" / f"differential-{gpu}.jsonl"


def files() -> tuple[Path, ...]:
    """Every committed report, by name."""
    return tuple(sorted((paths.SHIPPED / "verification").glob("differential-*.jsonl")))


def read(file: Path) -> tuple[DifferentialRow, ...]:
    """The rows of a report. Raises DataError where it cannot be read."""
    return read_rows(file, DifferentialRow, "run the differential test there again")
