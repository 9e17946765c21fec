"""One measured candidate of one attention problem: a line of data/attention/<gpu>.jsonl."""

from typing import Any, Literal

from pydantic import Field, field_validator

from attention.features import FEATURES
from attention.problem import AttentionProblem
from microbench.files import Frozen

HOST = "host"
# Fields of features, with their defaults, but those of the band, which has a column.
FIELDS = dict(field for feature in FEATURES if "causal" not in dict(feature.fields) for field in feature.fields)
STEPS = "+"  # between the cubins of a kernel's steps
PEER = "peer/"  # before the name of a kernel that is not ours, in data
Pass = Literal["forward", "backward", "forward and backward"]
# Over the two products of a forward, Q K^T and P V: a backward has S, dP, dQ, dK and dV.
PRODUCTS: dict[Pass, float] = {"forward": 1.0, "backward": 2.5, "forward and backward": 3.5}


class Timing(Frozen):
    """One candidate of one problem: median seconds of `n` calls, and the range that holds the middle half of them."""

    schema_version: Literal[1, 2] = 2
    gpu: str
    measured_utc: str
    shape: tuple[int, int, int, int, int, int, int]  # B, Hq, Hkv, Sq, Skv, D, Dv
    dtype: str
    causal: bool
    variant: str
    config: dict[str, int] = Field(default_factory=dict)
    seconds: float = Field(gt=0)
    low: float
    high: float
    n: int
    predicted_seconds: float | None = None
    error: float  # largest absolute error against the float64 oracle on the first and last head
    allowed_error: float
    threads: int
    source_sha256: str = ""  # of the text of our kernel (timed.identity); a run of 2026-11-22 has its cubin alone
    packages: dict[str, str] = Field(default_factory=dict)
    commit: str | None = None
    dirty: bool | None = None
    # Comparisons on a GPU (attention.compare); a peer's variant is 'peer/<name>', without a source of ours.
    window: tuple[int, int] = (-1, -1)
    lengths: tuple[int, ...] = ()  # of packed sequences, queries and keys alike
    run: str | None = None  # what was timed in one process, alternating
    grid: bool = False
    picked: bool = False  # by the chooser, among ours
    captured: bool | None = None  # in a CUDA graph
    cubin_sha256: str | None = None  # of a kernel of several steps theirs, joined by +
    l2_read: bool = False  # on a GPU: what filled the L2 before each call was read; before 2026-11-26 a memset wrote it
    fetch_bytes: int = 256  # that a miss of TMA's brought into the L2; lines since 2026-11-27 say 128
    # Version 2: what else was asked, and under what conditions the GPU was.
    passes: Pass = "forward"
    features: dict[str, float | bool | str] = Field(default_factory=dict)  # fields of a problem beside those above
    clock_mhz: float | None = None  # the median of the SM clocks that the calls ran at
    flags: tuple[str, ...] = ()  # 'busy', 'throttled:<reason>'
    bound_seconds: float | None = None  # what no GPU of this kind can do it in (attention.compare.bound)
    sustained_seconds: float | None = None  # a call, after others of its kind for a second
    sustained_clock_mhz: float | None = None
    joules: float | None = None  # a sustained call
    power_w: float | None = None  # of sustained calls

    @field_validator("features")
    @classmethod
    def _of_this_tree(cls, given: dict[str, Any]) -> dict[str, Any]:
        strange = [name for name in given if name not in FIELDS]
        if strange:
            raise ValueError(f"no feature has a field {strange[0]!r}")
        return given

    @property
    def problem(self) -> AttentionProblem:
        """The problem that was timed."""
        rows = sum(self.lengths)
        return AttentionProblem(
            *self.shape,
            dtype=self.dtype,
            device="cpu" if self.gpu.startswith(HOST) else "cuda",
            causal=self.causal,
            window=self.window,
            **self.features,
            alignment="bottom_right" if rows else "top_left",
            varlen=rows > 0,
            tokens_q=rows,
            tokens_kv=rows,
        )

    @property
    def cubins(self) -> tuple[str, ...]:
        """The hash of each step's cubin."""
        return tuple(self.cubin_sha256.split(STEPS)) if self.cubin_sha256 else ()

    @property
    def key(self) -> tuple[object, ...]:
        """What was timed: rows of one key tell of the same code on the same problem."""
        code = self.cubin_sha256 or self.source_sha256
        return self.variant, code, tuple(self.config.items()), self.passes, self.problem, self.lengths

    @property
    def tflops(self) -> float:
        """Speed in the field's convention (AttentionProblem.flops)."""
        return self.problem.flops * PRODUCTS[self.passes] / self.seconds / 1e12
