"""Four generations asked the same questions: what one of them is known by, each figure with its source.

A generation is a published profile, whose figures have ids of data/published/sources.csv, or our own measured one.
What neither holds is absent: no figure here is filled in from another generation.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

from microbench import published
from microbench.published import kinds
from microbench.published.facts import Fact, Kind
from microbench.results.profile import Profile
from microbench.results.profile_constant import ProfileConstant
from notebooks.ladders import gpu_benches

MEASURED = "measured"
FAR = "l2_far_latency_cycles"
# Of each level: its name, and the constant of its latency.
LEVELS = (
    ("shared memory", "smem_latency_cycles"),
    ("L1", "l1_latency_cycles"),
    ("L2", "l2_latency_cycles"),
    ("L2, far half", FAR),
    ("DRAM", "dram_latency_cycles"),
)
# Of each path to the tensor core: its name, and its rate, of an SM and clock or of the chip and second.
PATHS = (
    ("shared memory", "smem_bandwidth_bytes_per_clk_sm"),
    ("L2", "l2_bandwidth_bytes_per_s"),
    ("DRAM", "dram_bandwidth_bytes_per_s"),
)
EXPONENTIALS = "mufu_ex2_per_clk_sm"


@dataclass(frozen=True)
class Generation:
    """One notebook's GPU. `tensor` is the constant that holds the FLOP per clock and SM of `product`."""

    kind: str
    name: str
    title: str
    product: str
    tensor: str

    @property
    def measured(self) -> bool:
        """True where the profile is of our own runs."""
        return self.sheet is None

    @property
    def sheet(self) -> Kind | None:
        return next((kind for kind in published.load().kinds if kind.kind == self.kind), None)

    @property
    def profile(self) -> Profile:
        """Raises UnknownGpu where nothing is on file."""
        found = kinds.of_kind(self.sheet) if self.sheet else None
        return found or Profile.load(self.kind)

    @property
    def clock_hz(self) -> float:
        """The highest clock of the SMs, and for a published profile the boost clock of the data sheet."""
        return self.profile.clock_hz or self.profile.value(kinds.SM_CLOCK) * 1e6

    @property
    def flops_per_clk(self) -> float:
        return self.profile.value(self.tensor)

    @property
    def rows(self) -> int:
        """Rows of Q that one read of K or V serves within one instruction: the M of its shape."""
        return int(re.findall(r"\.m(\d+)n", self.product)[0])


GENERATIONS = (
    Generation("v100", "V100", "Volta", "mma.m8n8k4", "mma_f16_flops_per_clk_sm"),
    Generation("a100", "A100", "Ampere", "mma.m16n8k16", "mma_bf16_flops_per_clk_sm"),
    Generation("h200-sxm-141gb", "H200", "Hopper", "wgmma.m64n256k16", "wgmma_bf16_flops_per_clk_sm"),
    Generation("b200", "B200", "Blackwell", "tcgen05.mma.m128n256k16", "tcgen05_bf16_flops_per_clk_sm"),
)


def of(kind: str) -> Generation:
    """Raises StopIteration where no notebook dissects it."""
    return next(each for each in GENERATIONS if each.kind == kind)


@dataclass(frozen=True)
class Quoted:
    """A figure, who gave it, and of what."""

    value: float
    source: str
    of: str


def quoted(constant: ProfileConstant) -> Quoted:
    return Quoted(constant.value, ", ".join(constant.sources or (MEASURED,)), constant.basis or "our runs")


@dataclass(frozen=True)
class Level:
    """One level of memory: cycles, and ns at the clock they were counted at; None where no source gives it."""

    name: str
    cycles: Quoted | None
    clock_hz: float

    @property
    def ns(self) -> float | None:
        return self.cycles.value / self.clock_hz * 1e9 if self.cycles else None


def levels(generation: Generation) -> tuple[Level, ...]:
    """Every level, the nearest first."""
    profile = generation.profile
    found = []
    for name, constant in LEVELS:
        if constant in profile:
            found.append(Level(name, quoted(profile[constant]), counted_at(generation, profile[constant])))
        else:
            far = _far_half() if (generation.kind, constant) == (gpu_benches.GPU, FAR) else None
            found.append(Level(name, far, generation.clock_hz))
    return tuple(found)


@cache
def _far_half() -> Quoted:
    """The H200's, from one SM's chase over more than it sees as its own half; its profile has no constant of it."""
    row = next(row for row in gpu_benches.rows() if row.quantity == "L2 latency, other half")
    return Quoted(row.ours, MEASURED, f"one SM of board {gpu_benches.BOARD}, 36 to 46 MiB")


def counted_at(generation: Generation, constant: ProfileConstant) -> float:
    """The SM clock that cycles were counted at, in Hz.

    It is the clock that the source's row in sources.csv names; else the boost clock of the board's data sheet, because
    two boards of a kind may differ in it; else the kind's.
    """
    if generation.measured:
        return generation.clock_hz
    tables = published.load()
    first = (constant.sources or ("",))[0]
    said = next((f"{source.citation} {source.read}" for source in tables.sources if source.id == first), "")
    if named := re.search(r"(\d+) MHz", said):
        return float(named[1]) * 1e6
    spec = tables.spec((constant.basis or "").partition(",")[0])
    boost = spec.read("boost_clock_mhz") if spec else None
    return boost * 1e6 if boost else generation.clock_hz


@dataclass(frozen=True)
class Path:
    """A way to the tensor core: bytes of an SM and clock. `asks` is the FLOP that each byte must serve."""

    name: str
    bytes_per_clk: float
    quoted: Quoted
    flops_per_clk: float

    @property
    def asks(self) -> float:
        return self.flops_per_clk / self.bytes_per_clk


def feeds(generation: Generation) -> Iterator[Path]:
    """The paths that a source gives, the nearest first. A chip's rate is shared among SMs, at the highest clock."""
    profile = generation.profile
    for name, constant in PATHS:
        if constant in profile:
            rate = profile.value(constant)
            if constant.endswith("_bytes_per_s"):
                rate /= profile.sm_count * generation.clock_hz
            yield Path(name, rate, quoted(profile[constant]), generation.flops_per_clk)


def in_flight(generation: Generation) -> float:
    """Bytes that an SM must have under way so that DRAM never waits: its bandwidth times its latency (Little's law)."""
    profile = generation.profile
    latency = next(level.ns for level in levels(generation) if level.name == "DRAM") or float("nan")
    return profile.value("dram_bandwidth_bytes_per_s") * latency * 1e-9 / profile.sm_count


def facts(generation: Generation, quantity: str) -> tuple[Fact, ...]:
    """The trusted published figures of a quantity on the boards of the kind; none of a GPU that we measured."""
    boards = generation.sheet.boards if generation.sheet else ()
    return tuple(
        fact for fact in published.load().facts if fact.gpu in boards and fact.quantity == quantity and fact.trusted
    )


def softmax_share(generation: Generation, head_dim: int) -> float:
    """Clocks of the exponentials over those of the products: a score costs one exponential and 4 D FLOP."""
    products = 4 * head_dim / generation.flops_per_clk
    return 1 / generation.profile.value(EXPONENTIALS) / products
