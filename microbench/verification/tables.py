"""The tables of data/verification: one strict row model each, and CSV with the same bytes for the same rows."""

import csv
import io
from collections.abc import Iterable
from pathlib import Path
from typing import Literal, TypeVar

from pydantic import ValidationError

from microbench import paths
from microbench.errors import DataError
from microbench.record import Frozen


class BuildRow(Frozen):
    """One kernel on one architecture, over all its builds; compile times vary, and stand in no file."""

    kernel: str  # the probe's name; of attention the variant's, and the head dim
    arch: str
    builds: int
    kept: int  # builds that keep their rules; fewer than `builds` is a failure
    registers_min: int  # per thread
    registers_max: int
    smem_bytes_max: int  # per block: static, and of attention what its launches add
    spill_bytes_max: int  # per thread, stores and loads
    instructions_min: int  # of the whole kernel, without the padding behind it
    instructions_max: int
    signature: str  # the operations that it was compiled for, as they are spelled on this architecture
    notes: str  # C75xx notes of ptxas that are not fatal
    nvrtc: str


class AttentionRow(BuildRow):
    """One attention kernel of one head dim: the configurations and features that `python -m attention check` builds."""


class LatencyRow(Frozen):
    """What ptxas leaves between two dependent instructions of one kind."""

    instruction: str  # the name in latencies.CHAINS
    arch: str
    opcode: str  # as disassembled; several where ptxas alternates between pipes
    cycles: str  # the sum of the stall counts: '4'; '6 10' where pipes alternate
    scoreboard: Literal["no", "in part", "yes"]  # 'yes': the hardware decides, and `cycles` is what it takes at least
    nvrtc: str


MISSED = "missed"  # what a mode says of a bug that neither a report nor the result shows


class BlindRow(Frozen):
    """One bug that was planted, by someone who had not read the emulator, in a kernel that runs on it."""

    file: str  # of tests/emulated
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


Summary = TypeVar("Summary", BuildRow, AttentionRow)
Row = TypeVar("Row", BuildRow, AttentionRow, LatencyRow, BlindRow)
FILES: dict[type[Frozen], str] = {
    BuildRow: "build_matrix.csv",
    AttentionRow: "attention_matrix.csv",
    LatencyRow: "static_latency.csv",
    BlindRow: "blind_bugs.csv",
}


def path(kind: type[Row]) -> Path:
    """Where the committed table of these rows lies."""
    return paths.SHIPPED / "verification" / FILES[kind]


def text(kind: type[Row], rows: Iterable[Row]) -> str:
    """The file of these rows."""
    written = io.StringIO()
    lines = csv.DictWriter(written, list(kind.model_fields), lineterminator="\n")
    lines.writeheader()
    lines.writerows(row.model_dump() for row in rows)
    return written.getvalue()


def read(kind: type[Row]) -> tuple[Row, ...]:
    """The committed rows. Raises DataError where the table is missing or has a row of another kind."""
    file = path(kind)
    try:
        with file.open(encoding="utf-8", newline="") as lines:
            return tuple(kind.model_validate(row) for row in csv.DictReader(lines))
    except (OSError, ValidationError) as error:
        raise DataError(f"{file.name} cannot be read ({error}); write it again with `check --write`.") from error


def write(kind: type[Row], rows: Iterable[Row]) -> Path:
    """Write the table of this checkout. Raises DataError where there is none."""
    if paths.CHECKOUT is None:
        raise DataError("data/verification belongs to a checkout; clone the project to write it again.")
    file = path(kind)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text(kind, rows), encoding="utf-8", newline="")
    return file
