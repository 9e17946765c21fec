"""What a campaign keeps: a line for each problem that it timed, with every configuration in it, appended at once.

    data/campaigns/<gpu>/a-1.jsonl      set A, campaign 1
    data/campaigns/<gpu>/floors-1.jsonl the set of floors, whose lines hold peers as well
    data/campaigns/<gpu>/use-1.jsonl    the set of use, whose lines hold peers, and calls of attention's own functions

A line names the code that ran (commit, the text of each kernel, each cubin), the seed from which the order of the
configurations was drawn anew each round (measure.alternate, by '<seed> first' and '<seed> more'), and the SM clock and
the power beside each sample.
"""

import re
import statistics
from collections.abc import Iterable
from pathlib import Path
from typing import Literal, get_args

from pydantic import Field

from attention.campaign.posed import Class, Posed
from attention.problem import AttentionProblem
from attention.timed.timing import PEER
from attention.variant import Config
from microbench import files, paths
from microbench.files import Frozen

FOLDER = "campaigns"
Set = Literal["a", "b", "floors", "use"]
SETS: tuple[Set, ...] = get_args(Set)
DRAWN: tuple[Set, ...] = ("b", "use")  # from a freeze
DOOR = "door/"  # before the name of a function of attention's in data: what a user calls, whatever it runs
FILE = re.compile(rf"({'|'.join(SETS)})-(\d+)\.jsonl")
AGAIN = "the lines before it are sound, and git has the file as it was committed"


class TileTiming(Frozen):
    """One configuration of a kernel on one problem, a number each sample; `failure` says why there is none.

    A peer has its name in data (peer/torch_flash) and neither a configuration nor a cubin that is known; nor has a
    function of attention's (door/sdpa), which `names` the kernel that its call chose.
    """

    variant: str
    config: dict[str, int]
    cubin_sha256: str = ""  # of a kernel of several steps theirs, joined by +
    nvrtc: str = ""  # that compiled it
    seconds: tuple[float, ...] = ()
    clock_mhz: tuple[float | None, ...] = ()
    power_w: tuple[float | None, ...] = ()
    error: float | None = None  # largest absolute error of the checked rows
    allowed_error: float | None = None
    captured: bool = True  # in a CUDA graph
    failure: str | None = None
    picked: bool = False  # what a call runs here: of floors among ours, of use among all; in other sets not told
    names: str | None = None  # of a function of attention's: the kernel, and its configuration
    eager_seconds: tuple[float, ...] | None = None  # a call by the wall clock, outside of graphs, a number each round

    @property
    def is_peer(self) -> bool:
        return self.variant.startswith(PEER)

    @property
    def is_door(self) -> bool:
        return self.variant.startswith(DOOR)

    @property
    def is_ours(self) -> bool:
        """Whether it is a configuration of a kernel of ours."""
        return not (self.is_peer or self.is_door)

    @property
    def median(self) -> float:
        """Seconds of a call."""
        return statistics.median(self.seconds)

    @property
    def eager_median(self) -> float | None:
        """Seconds of a call with the host's part; None where that was not asked."""
        return statistics.median(self.eager_seconds) if self.eager_seconds else None

    @property
    def name(self) -> str:
        """The variant with its configuration, where it has one."""
        return f"{self.variant} {self.pick[1]}" if self.config else self.variant

    @property
    def pick(self) -> tuple[str, Config]:
        """The variant's path, and its configuration."""
        return self.variant, Config(tuple(self.config.items()))


class ProblemTiming(Frozen):
    """One problem in one campaign: every legal configuration of our kernels; of floors some; of use all, and more."""

    schema_version: Literal[1] = 1
    gpu: str
    set: Set
    campaign: int = Field(ge=1)
    freeze: str | None = None  # the commit from which the set was drawn
    commit: str | None = None
    dirty: bool | None = None  # of a copy that carries no stamp nobody knows
    seed: str  # of the orders
    measured_utc: str
    wall_s: float  # checks, captures and samples
    kind: Class
    problem: AttentionProblem
    lengths: tuple[int, ...] = ()
    used: tuple[int, ...] = ()
    l2_read: bool = False  # what filled the L2 before each sample was read; before 2026-11-26 a memset wrote it
    fetch_bytes: int = 256  # that a miss of TMA's brought into the L2; lines since 2026-11-27 say 128
    use: str | None = None  # of the set of use: what it is a use of, and the model
    texts: dict[str, str]  # of each kernel, by variant (timed.identity)
    driver: str | None = None
    packages: dict[str, str] = Field(default_factory=dict)
    flags: tuple[str, ...] = ()
    tiles: tuple[TileTiming, ...]

    @property
    def posed(self) -> Posed:
        return Posed(self.kind, self.problem, self.lengths, self.used, not self.l2_read)


def file_of(gpu: str, which: Set, campaign: int) -> Path:
    """Where the lines of a campaign lie."""
    return paths.writable_data() / FOLDER / gpu / f"{which}-{campaign}.jsonl"


def append(row: ProblemTiming) -> Path:
    """Add a line, a whole one or nothing. Raises DataError."""
    file = file_of(row.gpu, row.set, row.campaign)
    files.append(file, row)
    return file


def read(gpu: str, which: Set, campaign: int) -> tuple[ProblemTiming, ...]:
    """The lines of a campaign, none where there is no file. Raises DataError."""
    file = file_of(gpu, which, campaign)
    return files.read(file, ProblemTiming, AGAIN) if file.is_file() else ()


def campaigns(gpu: str, which: Set) -> tuple[int, ...]:
    """The numbers of the campaigns on file."""
    folder = paths.writable_data() / FOLDER / gpu
    found = (FILE.fullmatch(file.name) for file in folder.glob(f"{which}-*.jsonl"))
    return tuple(sorted(int(name[2]) for name in found if name))


def of_texts(rows: Iterable[ProblemTiming], texts: dict[str, str]) -> tuple[ProblemTiming, ...]:
    """The lines of the kernels whose texts are these."""
    return tuple(row for row in rows if row.texts == texts)
