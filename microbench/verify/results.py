"""What ran on a GPU, and whether it was right: a file a probe and a kernel in data/verification/<gpu>, a line a run.

Who adds a probe or a kernel, or runs one again, edits no line of another.
"""

from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

from microbench import paths
from microbench.files import Frozen
from microbench.files import append as append_rows
from microbench.files import read as read_rows
from microbench.machine import arch, nvml, stamp
from microbench.verify.tables import stem

ROOMS = {"probe": "probes", "kernel": "kernels"}


class Failure(Frozen):
    """A point or a problem whose result is wrong, or absent, and why."""

    what: str
    reason: str


class Result(Frozen):
    """Where, when and of which code. Never a host name, user name or path."""

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


class ProbeResult(Result):
    """A probe at its points, each launch's results held against NumPy's."""

    kind: Literal["probe"] = "probe"
    probe: str
    points: int
    unsupported: int  # points that this GPU cannot run, by the probe's own word
    arrays: int  # held against NumPy's

    @property
    def ok(self) -> bool:
        """Whether nothing was wrong."""
        return not self.failures


class SanitizerResult(Frozen):
    """What one tool of compute-sanitizer said of a few problems; no complaint is ''."""

    tool: str
    problems: int
    right: int
    complaint: str


class KernelResult(Result):
    """An attention kernel on random problems. Ratios are errors over what is allowed, the worst of all problems."""

    kind: Literal["kernel"] = "kernel"
    kernel: str
    torch: str
    seed: int
    problems: int
    right: int
    features: Mapping[str, int]  # problems that have each; a problem of two features counts in both
    worst_ratio: float
    worst_block_ratio: float
    worst_lse_ratio: float
    sanitizer: tuple[SanitizerResult, ...] = ()

    @property
    def ok(self) -> bool:
        """Whether every problem was right, and no tool has a complaint."""
        clean = all(not each.complaint and each.right == each.problems for each in self.sanitizer)
        return self.right == self.problems and clean


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


def path(result: ProbeResult | KernelResult) -> Path:
    """The file of a result."""
    name = result.probe if isinstance(result, ProbeResult) else stem(result.kernel)
    return paths.writable_data() / "verification" / result.gpu / ROOMS[result.kind] / f"{name}.jsonl"


def append(result: ProbeResult | KernelResult) -> Path:
    """Add a line to its file, and say which. Raises DataError."""
    file = path(result)
    append_rows(file, result)
    return file


def read(file: Path) -> tuple[ProbeResult | KernelResult, ...]:
    """The lines of a file. Raises DataError."""
    model = ProbeResult if file.parent.name == ROOMS["probe"] else KernelResult
    return read_rows(file, model, "`smscope verify` writes another where it is moved away")


def files() -> tuple[Path, ...]:
    """Every committed file, by GPU and name."""
    return tuple(sorted((paths.SHIPPED / "verification").glob("*/*/*.jsonl")))


def machines() -> set[tuple[str, str]]:
    """(GPU, architecture) of every machine that has committed results."""
    return {(row.gpu, row.arch) for file in files() for row in read(file)}
