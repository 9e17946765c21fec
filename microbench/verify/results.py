"""What ran on a GPU, and whether it was right: a file a probe or a kernel in data/verification/<gpu>, a line a run.

Who adds a probe or a kernel, or runs one again, edits no line of another.
"""

from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, ClassVar, Literal, TypeVar

from microbench import paths
from microbench.console.si import counted
from microbench.files import Frozen
from microbench.files import append as append_rows
from microbench.files import read as read_rows
from microbench.machine import arch, nvml, stamp


class Failure(Frozen):
    """A point, a case or a problem whose result is wrong, or absent, and why."""

    what: str
    reason: str


class Result(Frozen):
    """Where, when and of which code. Never a host name, user name or path."""

    folder: ClassVar[str]

    gpu: str
    name: str
    arch: str
    driver: str | None = None
    nvrtc: str  # several where some kernels were compiled elsewhere
    commit: str | None = None
    dirty: bool | None = None
    verified_utc: str
    quick: bool
    cubins: tuple[str, ...]  # SHA-256 of every image that ran
    failures: tuple[Failure, ...]

    @property
    def subject(self) -> str:
        """What was verified: the name of its file."""
        raise NotImplementedError

    @property
    def told(self) -> str:
        """How much of it, and how far it was right."""
        raise NotImplementedError

    @property
    def ok(self) -> bool:
        """Whether nothing was wrong."""
        return not self.failures


class ProbeResult(Result):
    """A probe at its points, each launch's results held against NumPy's."""

    folder = "probes"
    kind: Literal["probe"] = "probe"
    probe: str
    points: int
    unsupported: int  # points that this GPU cannot run, by the probe's own word
    arrays: int  # held against NumPy's

    @property
    def subject(self) -> str:
        return self.probe

    @property
    def told(self) -> str:
        checked = f"{counted(self.points, 'point')}, {counted(self.arrays, 'array')} as NumPy has them"
        return checked + _left_out(self.unsupported)


class WrappersResult(Result):
    """A room of microbench.verify.differential: wrappers of PTX on random inputs, held against the emulator's results.

    Errors are absolute up to values of 1, relative above; a wrapper that must be exact has none.
    """

    folder = "wrappers"
    kind: Literal["wrappers"] = "wrappers"
    wrappers: str
    cases: int
    unsupported: int  # cases whose kernel the compiler refuses for this architecture
    seeds: int  # random inputs of a case
    worst_errors: Mapping[str, float]  # by wrapper

    @property
    def subject(self) -> str:
        return self.wrappers

    @property
    def told(self) -> str:
        right = self.cases - len(self.failures)
        return f"{right} of {counted(self.cases, 'case')} as the emulator has them{_left_out(self.unsupported)}"


def _left_out(count: int) -> str:
    return f", {count} left out" if count else ""


Kind = TypeVar("Kind", bound=Result)


def where(gpu: nvml.Gpu, quick: bool) -> dict[str, Any]:
    """The fields of every result of one run on `gpu`."""
    commit = stamp.commit()
    return {
        "gpu": gpu.slug,
        "name": gpu.name,
        "arch": arch.by_compute_capability(*gpu.compute_capability).name,
        "driver": nvml.facts(gpu).driver,
        "commit": commit.sha,
        "dirty": commit.dirty,
        "verified_utc": datetime.now(UTC).isoformat(timespec="seconds"),
        "quick": quick,
    }


def append(result: Result) -> Path:
    """Add a line to its file, and say which. Raises DataError."""
    file = paths.writable_data() / "verification" / result.gpu / result.folder / f"{result.subject}.jsonl"
    append_rows(file, result)
    return file


def read(file: Path, kind: type[Kind]) -> tuple[Kind, ...]:
    """The lines of a file. Raises DataError."""
    return read_rows(file, kind, "`smscope verify` writes another where it is moved away")


def committed(kind: type[Kind]) -> tuple[Kind, ...]:
    """Every committed result of a kind, by GPU and name."""
    files = sorted((paths.SHIPPED / "verification").glob(f"*/{kind.folder}/*.jsonl"))
    return tuple(row for file in files for row in read(file, kind))
