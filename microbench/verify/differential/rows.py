"""What a GPU and the emulator made of the same inputs: data/verification/differential-<gpu>.jsonl, one row a case."""

from collections.abc import Iterable
from pathlib import Path
from typing import Literal

from pydantic import ValidationError

from microbench import paths
from microbench.errors import DataError
from microbench.files import Frozen


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


def text(rows: Iterable[DifferentialRow]) -> str:
    """The file of these rows."""
    return "".join(f"{row.model_dump_json()}\n" for row in rows)


def read(file: Path) -> tuple[DifferentialRow, ...]:
    """The rows of a report. Raises DataError where it cannot be read."""
    try:
        return tuple(DifferentialRow.model_validate_json(line) for line in file.read_text("utf-8").splitlines())
    except (OSError, ValidationError) as error:
        raise DataError(f"{file.name} cannot be read ({error}); run the differential test there again.") from error
