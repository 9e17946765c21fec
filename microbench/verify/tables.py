"""The tables of data/verification: one strict row model each, and CSV with the same bytes for the same rows.

Each probe has a file of its own, and so has whatever else is compiled, so that a new one edits no other's.
"""

import csv
import io
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import ClassVar, Literal, TypeVar

from pydantic import ValidationError

from microbench import paths
from microbench.errors import DataError
from microbench.files import Frozen


class BuildRow(Frozen):
    """One kernel on one architecture, over all its builds; compile times vary, and stand in no file."""

    folder: ClassVar[str] = "probes"

    kernel: str  # the probe's name, or more: its first word names the file
    arch: str
    builds: int
    kept: int  # builds that keep their rules; fewer than `builds` is a failure
    registers_min: int  # per thread
    registers_max: int
    smem_bytes_max: int  # per block: static, and what its launches add
    spill_bytes_max: int  # per thread, stores and loads
    instructions_min: int  # of the whole kernel, without the padding behind it
    instructions_max: int
    signature: str  # the operations that it was compiled for, as they are spelled on this architecture
    notes: str  # C7xxx notes of ptxas that are not fatal
    nvrtc: str


class LatencyRow(Frozen):
    """What ptxas leaves between two dependent instructions of one kind."""

    file_name: ClassVar[str] = "static_latency.csv"

    instruction: str  # the name in latencies.CHAINS
    arch: str
    opcode: str  # as disassembled; several where ptxas alternates between pipes
    cycles: str  # the sum of the stall counts: '4'; '6 10' where pipes alternate
    scoreboard: Literal["no", "in part", "yes"]  # 'yes': the hardware decides, and `cycles` is what it takes at least
    nvrtc: str


MISSED = "missed"  # what a mode says of a bug that neither a report nor the result shows


class BlindRow(Frozen):
    """One bug that was planted blind (how blind: data/verification/README.md) in a kernel that runs on the emulator."""

    file_name: ClassVar[str] = "blind_bugs.csv"

    file: str  # of microbench/verify/blind, or of attention/kernels
    kernel: str
    arch: str  # what the kernel is written for
    bug: str
    first_run: str  # the modes that found it before anything was altered: never written again
    eager: str  # what each mode says today: the head of its report, 'wrong result', or 'missed'
    lazy: str
    random: str

    @property
    def today(self) -> tuple[str, str, str]:
        """What eager, lazy and random say."""
        return self.eager, self.lazy, self.random

    @property
    def found_first(self) -> tuple[bool, bool, bool]:
        """Whether eager, lazy and random found it at the first run."""
        modes = self.first_run.split()
        return "eager" in modes, "lazy" in modes, "random" in modes

    @property
    def found_today(self) -> tuple[bool, bool, bool]:
        """Whether they find it now."""
        return self.eager != MISSED, self.lazy != MISSED, self.random != MISSED


Summary = TypeVar("Summary", bound=BuildRow)
Single = TypeVar("Single", LatencyRow, BlindRow)
Row = TypeVar("Row", bound=Frozen)


def path(kind: type[Single]) -> Path:
    """Where the committed table of these rows lies."""
    return paths.SHIPPED / "verification" / kind.file_name


def folder(kind: type[Summary]) -> Path:
    """Where the committed tables of these rows lie, one a probe or a kernel."""
    return paths.SHIPPED / "verification" / kind.folder


def stem(kernel: str) -> str:
    """The name of a kernel's file: that of the probe; of a path its words with dashes between."""
    return kernel.partition(" ")[0].replace("/", "-")


def texts(kind: type[Summary], rows: Iterable[Summary]) -> dict[str, str]:
    """The files of these rows, by their stems."""
    by_file = defaultdict[str, list[Summary]](list)
    for row in rows:
        by_file[stem(row.kernel)].append(row)
    return {name: text(kind, found) for name, found in by_file.items()}


def text(kind: type[Row], rows: Iterable[Row]) -> str:
    """The file of these rows."""
    written = io.StringIO()
    lines = csv.DictWriter(written, list(kind.model_fields), lineterminator="\n")
    lines.writeheader()
    lines.writerows(row.model_dump() for row in rows)
    return written.getvalue()


def read(kind: type[Single]) -> tuple[Single, ...]:
    """The committed rows. Raises DataError where the table is missing or has a row of another kind."""
    return _rows(kind, path(kind))


def read_all(kind: type[Summary]) -> tuple[Summary, ...]:
    """The committed rows of every probe or kernel, file by file. Raises DataError likewise."""
    files = sorted(folder(kind).glob("*.csv"))
    if not files:
        raise DataError(f"{folder(kind).name} holds no table; `check --write` writes them.")
    return tuple(row for file in files for row in _rows(kind, file))


def _rows(kind: type[Row], file: Path) -> tuple[Row, ...]:
    try:
        with file.open(encoding="utf-8", newline="") as lines:
            return tuple(kind.model_validate(row) for row in csv.DictReader(lines))
    except (OSError, ValidationError) as error:
        raise DataError(f"{file.name} cannot be read ({error}); write it again with `check --write`.") from error


def write(kind: type[Single], rows: Iterable[Single]) -> Path:
    """Write the table of this checkout. Raises DataError where there is none."""
    return _written(path(kind), text(kind, rows))


def write_all(kind: type[Summary], rows: Iterable[Summary], every: bool = True) -> tuple[Path, ...]:
    """Write the tables of these rows; where they are of `every` probe or kernel, those of others go. Raises DataError.

    Who has no checkout has no tables.
    """
    made = {folder(kind) / f"{name}.csv": content for name, content in texts(kind, rows).items()}
    for file, content in made.items():
        _written(file, content)
    if every:
        for file in {*folder(kind).glob("*.csv")} - made.keys():
            file.unlink()
    return tuple(made)


def _written(file: Path, content: str) -> Path:
    if paths.CHECKOUT is None:
        raise DataError("data/verification belongs to a checkout; clone the project to write it again.")
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(content, encoding="utf-8", newline="")
    return file
