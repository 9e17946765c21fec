"""The file boundary of measurements: a JSONL file per run, which holds the Environment, Records, and Finished last.

A line holds the records of a point (rows.py says how). Append-only. A run without its last line was interrupted, and
can be resumed: a row that failed without a number is then tried again, and `read` leaves it out where a later line
answers it. A line that cannot be read is named with file and line number, and the rest still loads.
"""

import json
from collections.abc import Container, Iterator
from functools import cached_property
from pathlib import Path
from typing import Any, Final, Literal

from pydantic import Field, ValidationError, model_validator

from microbench import faults, files, paths
from microbench.errors import DataError, UnknownGpu
from microbench.files import Frozen
from microbench.machine import nvml
from microbench.point import Values
from microbench.results import rows

SCHEMA_VERSION: Final = 2

# Repeats inside one process are not independent: a run counts as full from six fresh processes on.
FULL_CAMPAIGNS = 6
QUICK_CAMPAIGNS = 2

# Flags that say what else used the device meanwhile: other processes, the hypervisor's other guests, its own governor.
DISTURBANCES: Final = ("busy", "stolen", "clock-moved")

Status = Literal["ok", "unsupported", "failed", "off-clock", "throttled"]
# These hold a value. 'throttled' is what NVML said in runs before the measured clock judged.
MEASURED: Final = ("ok", "off-clock", "throttled")
BoundStatus = Literal["ok", "violated", "unknown"]


class Axes(Frozen):
    """What all records of a probe share: its family, its axes in order, and the unit of each metric."""

    family: str
    axes: tuple[str, ...] = ()
    units: dict[str, str]


class Environment(Frozen):
    """Where and with what a run was measured. Never a host name, user name or path."""

    kind: Literal["environment"] = "environment"
    schema_version: Literal[1, 2] = SCHEMA_VERSION
    run_id: str
    started_utc: str
    gpu: str
    name: str
    arch: str
    compute_capability: tuple[int, int]
    sm_count: int = Field(gt=0)
    clock_hz: float | None = Field(None, gt=0)
    dram_bytes_per_s: float | None = None
    dram_bytes: int
    l2_bytes: int | None = None
    driver: str | None = None
    vbios: str | None = None
    power_limit_w: float | None = None
    ecc: bool | None = None
    mig: bool | None = None
    sm_clock_mhz: float | None = None
    memory_clock_mhz: float | None = None
    uuid_sha256: str | None = None
    nvrtc: str | None = None
    nvrtc_flags: tuple[str, ...] = ()
    clock_overhead_cycles: float | None = None
    globaltimer_tick_ns: float | None = None
    python: str
    packages: dict[str, str] = Field(default_factory=dict)
    commit: str | None = None
    dirty: bool | None = None
    sources_sha256: str | None = None
    quick: bool = False
    only: tuple[str, ...] = ()  # the probes that --only named; empty for all
    campaigns: int
    probes: dict[str, Axes] = Field(default_factory=dict)

    @property
    def board(self) -> str:
        """Which of the boards of its kind: the begin of its UUID's hash, '' where that is unknown, and of a CPU."""
        return nvml.board(self.uuid_sha256 or "")

    @cached_property
    def header(self) -> rows.Header:
        """What the records of this file leave out."""
        probes = {name: rows.Axes(told.family, told.axes, told.units) for name, told in self.probes.items()}
        return rows.Header(self.run_id, "host" if self.arch == "host" else "nvrtc", probes)


class Record(Frozen):
    """One metric of one point in one campaign. It always exists: a reason stands where a value cannot.

    seconds     wall time of measuring the point, which all of its metrics share
    values      a map, of which value, low and high are the median and the ends
    """

    kind: Literal["record"] = "record"
    run_id: str
    campaign: int
    probe: str
    family: str
    method: Literal["nvrtc", "numba", "host"]
    point: dict[str, int | float | str] = Field(default_factory=dict)
    metric: str
    unit: str
    status: Status
    reason: str | None = None
    value: float | None = None
    low: float | None = None
    high: float | None = None
    n: int = 0
    clock_mhz: float | None = None
    bound_lower: float | None = None
    bound_upper: float | None = None
    bound: BoundStatus = "unknown"
    flags: tuple[str, ...] = ()
    cubin_sha256: str | None = None
    registers: int | None = None
    seconds: float | None = None
    values: Values | None = None

    @property
    def measured(self) -> bool:
        """True where it holds a number that was not refused."""
        return self.status in MEASURED

    @property
    def disturbed(self) -> bool:
        """True where something else used the device meanwhile."""
        return any(flag in DISTURBANCES for flag in self.flags)

    @property
    def empty(self) -> bool:
        """True where it failed before there was any number; a number that was refused is no reason to try again."""
        return self.status == "failed" and self.value is None

    @model_validator(mode="after")
    def _value_or_reason(self) -> "Record":
        if self.measured and self.value is None:
            raise ValueError(f"a record with status {self.status} needs a value")
        if self.status in ("unsupported", "failed") and not self.reason:
            raise ValueError(f"a record with status {self.status} needs a reason")
        return self


class Spent(Frozen):
    """Seconds of the session that ended a run: all of it, compiling ahead, and waiting for workers to open the GPU."""

    wall_s: float
    building_s: float
    starting_s: float


class Finished(Frozen):
    kind: Literal["finished"] = "finished"
    run_id: str
    finished_utc: str
    spent: Spent | None = None


class Run(Frozen):
    path: Path
    environment: Environment
    records: tuple[Record, ...]
    problems: tuple[str, ...] = ()
    finished: bool = False
    spent: Spent | None = None


def append(path: Path, environment: Environment, *records: Record) -> None:
    """Write these records or none of them to the file of a run. Raises DataError."""
    told = rows.lines([row.model_dump() for row in records], environment.header)
    files.append_lines(path, [json.dumps(line, separators=(",", ":"), allow_nan=False) for line in told])


def read(path: Path, probes: Container[str] | None = None) -> Run:
    """Load one run, or of it these probes alone. Raises DataError only where the file has no readable environment."""
    environment: Environment | None = None
    records: list[Record] = []
    unread: list[str] = []
    finished: Finished | None = None
    for number, row, problem in _lines(path):
        if problem is None and row is not None:
            try:
                if row.get("kind") == "environment":
                    environment = Environment.model_validate(row)
                elif row.get("kind") == "finished":
                    finished = Finished.model_validate(row)
                elif probes is None or row.get("probe") in probes:
                    header = environment.header if environment else None
                    records.extend([Record.model_validate(each) for each in rows.expand(row, header)])
                continue
            except ValidationError as error:
                problem = faults.first_of(error, "row")
        unread.append(f"line {number}: {problem}")
    if environment is None and not records:
        raise DataError(f"{path.name} is no run that can be read: {next(iter(unread), 'it is empty')}.")
    if environment is None:
        raise DataError(
            f"{path.name} has no readable environment line, so its {len(records)} records cannot be "
            "placed; restore its first line or move the file out of data/runs."
        )
    return Run(
        path=path,
        environment=environment,
        records=_answered(records),
        problems=tuple(f"{path.name}, {why}; this line is left out, the rest is loaded." for why in unread),
        finished=finished is not None,
        spent=finished.spent if finished else None,
    )


def _answered(records: list[Record]) -> tuple[Record, ...]:
    """Without the empty rows that a later row of the same key answers."""
    asked = {row.probe for row in records if row.empty}
    last = {_key(row): at for at, row in enumerate(records) if row.probe in asked}
    return tuple(row for at, row in enumerate(records) if not row.empty or last[_key(row)] == at)


def _key(row: Record) -> tuple[object, ...]:
    return row.campaign, row.probe, row.method, tuple(row.point.items()), row.metric


def _lines(path: Path) -> Iterator[tuple[int, dict[str, Any] | None, str | None]]:
    try:
        text = path.read_bytes().decode("utf-8", errors="replace")
    except OSError as error:
        raise DataError(f"Cannot read {path.name}: {error.strerror}.") from error
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except json.JSONDecodeError as error:
            what = error.msg.removesuffix(" at")  # as in "Unterminated string starting at"
            yield number, None, f"not valid JSON ({what} at column {error.colno})"
            continue
        except (RecursionError, ValueError) as error:  # brackets without end, a number of 5000 digits
            yield number, None, f"not readable JSON ({error})"
            continue
        yield (number, row, None) if isinstance(row, dict) else (number, None, "not a JSON object")


def read_all(
    gpu: str | None = None, probes: Container[str] | None = None, board: str | None = None
) -> tuple[list[Run], list[str]]:
    """Every run that can be read, and a sentence for each run and each line that cannot.

    Of `probes` alone if given, and of one `board`. Raises UnknownGpu where no run is of `gpu`.
    """
    if gpu and not run_files(gpu):
        known = ", ".join(sorted({file.parent.name for file in run_files()})) or "none yet"
        raise UnknownGpu(f"There is no run of {gpu!r} (known: {known}); run `{paths.typed('bench')}` on that machine.")
    runs: list[Run] = []
    problems: list[str] = []
    for file in run_files(gpu):
        if board and board_of(file) not in (board, None):
            continue
        try:
            runs.append(read(file, probes))
            problems.extend(runs[-1].problems)
        except DataError as error:
            problems.append(str(error))
    return runs, problems


def board_of(file: Path) -> str | None:
    """The board that the first line of a run names; None where that line cannot be read."""
    try:
        with file.open(encoding="utf-8") as lines:
            return Environment.model_validate_json(next(lines)).board
    except (OSError, StopIteration, ValueError):
        return None


def run_files(gpu: str | None = None) -> list[Path]:
    """Every run file, the packaged or checked-out ones first, in order of time."""
    return [file for root in paths.data_roots() for file in sorted((root / "runs").glob(f"{gpu or '*'}/*.jsonl"))]
