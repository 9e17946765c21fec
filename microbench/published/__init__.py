"""The literature, read from data/published: loaded once, every row checked at the file boundary.

A row that does not validate is a DataError that names file, line and column. Where the facts come from, and what was
changed when they were copied, stands in data/published/README.md.
"""

import csv
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TypeVar

from pydantic import TypeAdapter, ValidationError

from microbench import faults, paths
from microbench.errors import DataError
from microbench.published.facts import (
    AttentionFact,
    Band,
    CcLimit,
    CcRate,
    Fact,
    Gpu,
    Kind,
    Quantity,
    Rejected,
    Source,
    Spec,
)


@dataclass(frozen=True)
class Published:
    facts: tuple[Fact, ...]
    attention: tuple[AttentionFact, ...]
    gpus: tuple[Gpu, ...]
    specs: tuple[Spec, ...]
    limits: tuple[CcLimit, ...]
    rates: tuple[CcRate, ...]
    sources: tuple[Source, ...]
    quantities: tuple[Quantity, ...]
    bands: tuple[Band, ...]
    rejected: tuple[Rejected, ...]
    kinds: tuple[Kind, ...]

    def gpu(self, name: str) -> Gpu | None:
        return next((gpu for gpu in self.gpus if gpu.name == name), None)

    def spec(self, gpu_name: str) -> Spec | None:
        gpu = self.gpu(gpu_name)
        return next((spec for spec in self.specs if gpu and spec.gpu == gpu.spec), None)


@cache
def load(folder: Path | None = None) -> Published:
    """Read every table (of `folder`, data/published by default). Raises DataError with file, line and column."""
    root = folder or paths.SHIPPED / "published"
    return Published(
        facts=rows(root / "measurements.csv", Fact),
        attention=rows(root / "attention.csv", AttentionFact),
        gpus=rows(root / "gpus.csv", Gpu),
        specs=rows(root / "specs.csv", Spec),
        limits=rows(root / "cc_limits.csv", CcLimit),
        rates=rows(root / "cc_op_throughput.csv", CcRate),
        sources=rows(root / "sources.csv", Source),
        quantities=rows(root / "quantities.csv", Quantity),
        bands=rows(root / "acceptance.csv", Band),
        rejected=rows(root / "rejected.csv", Rejected),
        kinds=rows(root / "kinds.csv", Kind),
    )


Row = TypeVar("Row")


def rows(file: Path, kind: type[Row]) -> tuple[Row, ...]:
    """Every row of one CSV file as `kind`; an empty cell takes the column's default. Raises DataError."""
    adapter = TypeAdapter(kind)
    return tuple(_checked(adapter, row, f"{file.name}, line {number}") for number, row in _cells(file))


def _checked(adapter: TypeAdapter[Row], row: dict[str, str], where: str) -> Row:
    try:
        return adapter.validate_python(row)
    except ValidationError as error:
        raise DataError(f"{where}, {faults.first_of(error, 'row')}; mend the row or take it out.") from error


def _cells(file: Path) -> Iterator[tuple[int, dict[str, str]]]:
    try:
        with file.open(newline="", encoding="utf-8") as stream:
            reader = csv.DictReader(stream, strict=True)
            for row in reader:
                if None in row or None in row.values():
                    raise DataError(
                        f"{file.name}, line {reader.line_num}: the row has not as many cells as the header."
                    )
                yield reader.line_num, {column: cell for column, cell in row.items() if cell.strip()}
    except (csv.Error, UnicodeDecodeError) as error:
        raise DataError(f"{file.name} of the published facts is no CSV file: {error}.") from error
    except OSError as error:
        where = f"{file.name} of the published facts"
        raise DataError(f"Cannot read {where}: {error.strerror}{paths.moved(file)}.") from error
