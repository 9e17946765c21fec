"""The file boundary of attention timings: data/attention/<gpu>.jsonl, one measured candidate a line, append-only."""

from pathlib import Path
from typing import Literal

from pydantic import Field, ValidationError

from attention import timing_faults
from attention.problem import AttentionProblem
from microbench import paths
from microbench.record import Frozen, append

HOST = "host"


class Timing(Frozen):
    """One candidate of one problem: median seconds of `n` calls, and the range that holds the middle half of them."""

    schema_version: Literal[1] = 1
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
    source_sha256: str
    packages: dict[str, str] = Field(default_factory=dict)
    commit: str | None = None
    dirty: bool | None = None
    # Comparisons on a GPU (attention.peers); a peer's variant is 'peer/<name>', without a source of ours.
    window: tuple[int, int] = (-1, -1)
    lengths: tuple[int, ...] = ()  # of packed sequences, queries and keys alike
    run: str | None = None  # what was timed in one process, alternating
    grid: bool = False
    picked: bool = False  # by the chooser, among ours
    captured: bool | None = None  # in a CUDA graph
    cubin_sha256: str | None = None

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
            alignment="bottom_right" if rows else "top_left",
            varlen=rows > 0,
            tokens_q=rows,
            tokens_kv=rows,
        )

    @property
    def tflops(self) -> float:
        """Speed in the field's convention (AttentionProblem.flops)."""
        return self.problem.flops / self.seconds / 1e12


def write(timing: Timing, kind: str = "") -> Path:
    """Append one timing to its machine's file, a whole line or nothing. Raises DataError.

    `kind` names another file of the same machine ('ladder'), which corrects no prediction.
    """
    path = paths.writable_data() / "attention" / f"{timing.gpu}{kind and '-'}{kind}.jsonl"
    append(path, timing)
    return path


def read(gpu: str) -> tuple[tuple[Timing, ...], tuple[str, ...]]:
    """Every sound timing of a machine, and a sentence for each line that is none."""
    timings: list[Timing] = []
    problems: list[str] = []
    for file in files(gpu):
        sound, wrong = judged(file)
        timings += sound.values()
        problems += [
            f"{file.name}, line {line}: {why}; this line is left out, the rest is loaded."
            for line, why in wrong.items()
        ]
    return tuple(timings), tuple(problems)


def judged(file: Path) -> tuple[dict[int, Timing], dict[int, str]]:
    """The sound timings of one file, and what is wrong with the others, by line."""
    sound: dict[int, Timing] = {}
    wrong: dict[int, str] = {}
    try:
        lines = file.read_bytes().decode("utf-8", errors="replace").split("\n")
    except OSError as error:
        return sound, {1: f"the file cannot be read ({error.strerror})"}
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            timing = Timing.model_validate_json(line)
            why = timing_faults.of_timing(timing, file)
        except ValidationError as error:
            why = timing_faults.why_unreadable(line, error)
        if why:
            wrong[number] = why.removesuffix(".")
        else:
            sound[number] = timing
    return sound, wrong


def files(gpu: str) -> list[Path]:
    """Where the timings of a machine lie, the shipped ones first."""
    every = (root / "attention" / f"{gpu}.jsonl" for root in paths.data_roots())
    return [file for file in every if file.is_file()]
