"""What a published fact is: one frozen dataclass per table of data/published, validated cell by cell when it is made.

An unknown column, unit, flag or confidence does not pass. What the columns mean stands in data/published/README.md.
"""

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, ConfigDict, Field, model_validator
from pydantic.dataclasses import dataclass

from microbench.machine.arch import Arch, by_compute_capability

Confidence = Literal["exact", "read-from-figure", "secondary"]
Flag = Literal[
    "address-step", "clock-locked", "derived", "disputed", "dram-likely-underestimate", "dtype-and-causal-inferred",
    "gpu-inferred", "issue-cpi", "label-hidden-bar-height", "loaded-latency", "low-trust", "machine-extracted",
    "method-differs", "mixed-plateau", "ocr", "pipelined-chain", "pixel-measured", "range-midpoint", "sequence",
    "single-author-log", "sliding-window", "softmax-free-variant", "source-anomaly", "source-internal-mismatch",
    "source-unit-error", "superseded", "time-only", "timer-overhead",
]  # fmt: skip
Unit = Literal[
    "cycles", "ns", "us", "cycles/inst", "instructions", "inst/cycle", "inst/clk/SM", "inst/clk/sub-core",
    "thread-inst/clk/SM", "op/clk", "op/clk/SM", "OP/clk/SM", "FMA/clk/SM", "FLOP/clk/SM", "FLOP", "GFLOPS", "TFLOPS",
    "TOPS", "TFLOPS/W", "Gop/s", "B", "KiB", "MiB", "GiB", "MB/s", "GB/s", "GiB/s", "TB/s", "GB/s/SM", "B/clk",
    "B/clk/SM", "bit", "bit/clk", "pJ/bit", "MHz", "banks", "ways", "sets", "entries", "1024-bit entries", "counters",
    "SMs", "GPCs", "HMMA.16816", "ratio", "fraction", "fraction of RF", "x",
]  # fmt: skip
LimitUnit = Literal[
    "KiB", "bool", "types", "blocks", "warps", "threads", "x", "32-bit registers", "registers", "banks", "SMs",
]  # fmt: skip

UNTRUSTED: frozenset[Flag] = frozenset(
    {"low-trust", "disputed", "source-anomaly", "superseded", "dram-likely-underestimate"}
)
OTHER_METHOD: frozenset[Flag] = frozenset({
    "method-differs", "timer-overhead", "loaded-latency", "issue-cpi", "pipelined-chain", "mixed-plateau",
    "address-step",
})  # fmt: skip


def _split(cell: Any) -> Any:
    return tuple(filter(None, cell.split(";"))) if isinstance(cell, str) else cell


Flags = Annotated[tuple[Flag, ...], BeforeValidator(_split)]
STRICT = ConfigDict(extra="forbid", allow_inf_nan=False, str_strip_whitespace=True)


@dataclass(frozen=True, config=STRICT)
class Fact:
    """One published number. `sequence` holds a `/`-separated series where one number would not do."""

    gpu: str
    quantity: str
    unit: Unit
    source: str
    confidence: Confidence
    value: float | None = None
    sequence: str = ""
    conditions: str = ""
    locator: str = ""
    flags: Flags = ()

    @model_validator(mode="after")
    def _one_value(self) -> "Fact":
        if (self.value is None) != bool(self.sequence) or bool(self.sequence) != ("sequence" in self.flags):
            raise ValueError("a row holds either a value, or a sequence and the flag that says so")
        return self

    @property
    def trusted(self) -> bool:
        """False where the row's own flags say that nobody should build on it."""
        return self.value is not None and not UNTRUSTED.intersection(self.flags)


@dataclass(frozen=True, config=STRICT)
class AttentionFact:
    """The speed of one attention kernel on one shape; forward counts 2 B H Sq Skv (Dqk + Dv), halved where causal."""

    gpu: str
    kernel: str
    pass_: Annotated[Literal["fwd", "bwd", "fwd+bwd"], Field(alias="pass")]
    dtype: str
    source: str
    confidence: Confidence
    head_dim: int | None = None
    head_dim_v: int | None = None
    causal: bool | None = None
    batch: int | None = None
    heads: int | None = None
    kv_heads: int | None = None
    seqlen: int | None = None
    kv_seqlen: int | None = None
    tflops: float | None = None
    time_ms: float | None = None
    conditions: str = ""
    locator: str = ""
    flags: Flags = ()


@dataclass(frozen=True, config=STRICT)
class Gpu:
    """A board as the sources call it. `slug` begins our own name for it; empty where the source does not say which."""

    name: str
    generation: str
    compute_capability: str
    chip: str
    slug: str = ""
    spec: str = ""
    line: Literal["", "GeForce"] = ""  # GeForce: the consumer line, whose tensor cores halve f32 accumulators

    @property
    def arch(self) -> Arch:
        """Raises UnknownArch."""
        return by_compute_capability(*map(int, self.compute_capability.split(".")))


@dataclass(frozen=True, config=STRICT)
class Spec:
    """A vendor's specification. The columns named in `recalled` were filled from memory and never decide anything."""

    gpu: str
    arch: str
    compute_capability: str
    chip: str
    source: str
    sm_count: int | None = None
    base_clock_mhz: float | None = None
    boost_clock_mhz: float | None = None
    max_clock_mhz: float | None = None  # the driver's highest; that of a GeForce lies a quarter above its boost clock
    mem_type: str = ""
    mem_size_gb: str = ""
    mem_bw_gbs: str = ""
    l2_mib: float | None = None
    smem_per_sm_kib: int | None = None
    smem_per_block_kib: int | None = None
    unified_l1_smem_kib: int | None = None
    regs_per_sm: int | None = None
    max_warps_per_sm: int | None = None
    max_threads_per_sm: int | None = None
    max_blocks_per_sm: int | None = None
    fp32_cores_per_sm: int | None = None
    fp32_tflops: float | None = None
    fp64_tflops: float | None = None
    tc_fp16_fp32acc_tflops: float | None = None
    tc_bf16_tflops: float | None = None
    tc_tf32_tflops: float | None = None
    tc_fp8_tflops: float | None = None
    tc_int8_tops: float | None = None
    tc_fp4_tflops: float | None = None
    tc_fp64_tflops: float | None = None
    tdp_w: float | None = None
    nvlink_total_gbs: float | None = None
    tmem_kib_per_sm: int | None = None
    mufu_per_clk_sm: float | None = None
    recalled: Annotated[tuple[str, ...], BeforeValidator(_split)] = ()
    notes: str = ""

    def number(self, column: str) -> float | None:
        """The number in `column`, None where there is none ('80 / 96' is no number)."""
        value = getattr(self, column)
        try:
            return float("" if value is None else value)
        except ValueError:
            return None

    def read(self, column: str) -> float | None:
        """The same if a document that was read gives it."""
        return None if column in self.recalled else self.number(column)


@dataclass(frozen=True, config=STRICT)
class CcLimit:
    """What a compute capability has per SM or per thread; a list of types stands as text."""

    compute_capability: str
    quantity: str
    value: float | str
    unit: LimitUnit
    source: str
    confidence: Confidence
    locator: str = ""


@dataclass(frozen=True, config=STRICT)
class CcRate:
    """A documented rate: results per clock and SM of one compute capability ('7.x' means every 7)."""

    compute_capability: str
    operation: str
    results_per_clk_sm: float
    source: str
    confidence: Confidence
    locator: str = ""
    note: str = ""


@dataclass(frozen=True, config=STRICT)
class Source:
    id: str
    citation: str
    read: str
    trust: Literal["high", "good", "medium", "mixed", "low", "secondary"]
    licence: str


@dataclass(frozen=True, config=STRICT)
class Quantity:
    """How a published quantity becomes one of our constants.

    convert: '' multiplies by `factor`; 'per_sm' also divides by the board's SMs, 'per_clk' by its highest clock,
    'per_sm_clk' by both; 'share' takes TFLOPS as a share of the board's rated bf16 peak; 'fraction' takes a fraction of
    peak. scope: 'chip' compares every board with this chip, 'sku' only the same board, and 'bound' none: the row only
    has to keep the constant's bound. 'profile' compares none either, and a published profile takes it where nothing
    better is known of that board. needs: a flag or a phrase that the row must carry.
    """

    constant: str
    quantity: str
    factor: float
    scope: Literal["chip", "sku", "bound", "profile"]
    tolerance: Annotated[float, Field(gt=0, lt=0.5)]
    convert: Literal["", "per_sm", "per_clk", "per_sm_clk", "share", "fraction"] = ""
    needs: str = ""
    note: str = ""

    @property
    def compared(self) -> bool:
        """Whether a measured constant is compared with rows of this quantity."""
        return self.scope in ("chip", "sku")


@dataclass(frozen=True, config=STRICT)
class Kind:
    """A kind of GPU that has a published profile; the data sheet of the first of its `boards` stands for all of them.

    sources: where the numbers of that data sheet were read, ids of sources.csv.
    """

    kind: str
    boards: Annotated[tuple[str, ...], BeforeValidator(_split), Field(min_length=1)]
    sources: Annotated[tuple[str, ...], BeforeValidator(_split), Field(min_length=1)]


@dataclass(frozen=True, config=STRICT)
class Band:
    """What a constant must lie in on one architecture (and on boards whose slug begins with `gpu`); None is open."""

    arch: str
    constant: str
    unit: str
    basis: str
    gpu: str = ""
    low: float | None = None
    high: float | None = None

    @model_validator(mode="after")
    def _has_an_end(self) -> "Band":
        if self.low is None and self.high is None:
            raise ValueError("a band needs at least one end")
        if self.low is not None and self.high is not None and self.low > self.high:
            raise ValueError(f"low {self.low:g} lies above high {self.high:g}")
        return self


@dataclass(frozen=True, config=STRICT)
class Rejected:
    """A number that was published and is wrong, and the gate of ours that must catch it."""

    gate: Literal["bound", "acceptance", "comparison"]
    gpu: str
    quantity: str
    value: float
    unit: str
    why: str
    source: str
    conditions: str = ""
