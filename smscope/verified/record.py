"""The file of one run of `smscope verify`: which GPU and code, what became of each part, and what the host lacks.

It is written anew, whole, after each part: whatever ends the process, every part that was done before is in it.
"""

from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, ValidationError

from attention.compare.apart import PeersResult
from attention.verify.kernel import KernelResult
from microbench import faults, paths
from microbench.errors import DataError
from microbench.files import Frozen, put
from microbench.verify.results import ProbeResult, WrappersResult
from smscope.verified.board import BoardResult
from smscope.verified.packed import PackedRun

Verdict = Literal["confirmed", "refuted", "lacking", "broken"]
AnyResult = ProbeResult | WrappersResult | KernelResult | BoardResult | PeersResult


class Gap(Frozen):
    """What this host has not, or was not asked for, and what is missing for it."""

    name: str
    why: str

    @property
    def told(self) -> str:
        """One sentence with its name in it."""
        return self.why if self.name in self.why else f"{self.name}: {self.why}"


class Who(Frozen):
    """The GPU, the code and the options. Calls that agree in all of it go on with one another's file."""

    gpu: str
    name: str
    arch: str
    uuid_sha256: str | None = None
    driver: str | None = None
    nvrtc: tuple[str, ...] = ()  # distributions and versions
    commit: str | None = None
    dirty: bool | None = None
    sources_sha256: str
    quick: bool
    problems: int  # random ones of each attention kernel
    seed: int
    sanitize: bool


class Done(Frozen):
    """One part. `lacking`: the host has not what it needs; `broken`: it ended without a result, for a `reason`."""

    step: str
    name: str
    verdict: Verdict
    reason: str = ""
    seconds: float
    ended_utc: str
    result: Annotated[AnyResult, Field(discriminator="kind")] | None = None

    @property
    def key(self) -> str:
        return f"{self.step}/{self.name}"

    @property
    def decided(self) -> bool:
        """Whether silicon answered; any other part is tried again by the next call."""
        return self.verdict in ("confirmed", "refuted")

    @property
    def failed(self) -> bool:
        """Whether it makes the exit code 1: what a host lacks does not."""
        return self.verdict in ("refuted", "broken")

    @property
    def told(self) -> str:
        """What was found, or why there is nothing."""
        return self.reason or (self.result.told if self.result else "")


class Record(Frozen):
    """One run, of one call of the command or of several. `finished`: every part was tried."""

    format: Literal[1, 2] = 2  # 1 carried no run
    run_id: str
    started_utc: str
    who: Who
    calls: int = 1
    finished: bool = False
    planned: tuple[str, ...] = ()  # the key of every part, in order
    gaps: tuple[Gap, ...] = ()
    parts: tuple[Done, ...] = ()

    def with_part(self, part: Done) -> "Record":
        """The same with one part more, which replaces what there was of it."""
        return self.model_copy(update={"parts": (*(each for each in self.parts if each.key != part.key), part)})

    @property
    def measured(self) -> tuple[PackedRun, ...]:
        """The runs that it carries."""
        boards = (part.result for part in self.parts if isinstance(part.result, BoardResult))
        return tuple(board.measured for board in boards if board.measured is not None)

    @property
    def decided(self) -> frozenset[str]:
        """The keys of the parts that need not be done again."""
        return frozenset(part.key for part in self.parts if part.decided)

    @property
    def failed(self) -> bool:
        """Whether anything was refuted, or ended without a result."""
        return any(part.failed for part in self.parts)


def folder_of(gpu: str) -> Path:
    """Where the runs of a GPU lie, each a file, with a page of the same name."""
    return paths.writable_data() / "verification" / gpu


def file_of(record: Record) -> Path:
    """Where a run lies."""
    return folder_of(record.who.gpu) / f"{record.run_id}.json"


def write(record: Record) -> Path:
    """Put the file in place of its predecessor, whole or not at all. Raises DataError."""
    file = file_of(record)
    try:
        put(file, record.model_dump_json(indent=1, exclude_none=True) + "\n")
    except OSError as error:
        raise DataError(
            f"Could not write {file.name} in {file.parent}: {error.strerror}{paths.moved(file)}. Free some space and "
            "run again; what was verified before is kept."
        ) from error
    return file


def read(file: Path, instead: str = "it is left as it is") -> Record:
    """Raises DataError where it is none, or one of a later release; the sentence ends with what happens `instead`."""
    try:
        return Record.model_validate_json(file.read_bytes())
    except (OSError, ValidationError) as error:
        why = faults.told(error) if isinstance(error, ValidationError) else error.strerror
        named = "/".join(file.parts[-2:])
        raise DataError(f"{named} is no run of this release's `smscope verify` ({why}); {instead}.") from error
