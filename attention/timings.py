"""The file boundary of attention timings: data/attention/<gpu>.jsonl, one measured candidate a line, append-only.

They also correct the model: predicted over measured, the median over the timings of the nearest problems on this
machine, is an efficiency. A timing of our own kernel counts only while the kernel's source is the one that was timed.
"""

import hashlib
from functools import cache
from pathlib import Path
from typing import Literal

from pydantic import Field, ValidationError

from attention.calibration import Duel, Sample, calibrated, duels
from attention.model import Efficiency, Unpredicted, predict
from attention.problem import AttentionProblem
from attention.variant import KERNELS, Config, Variant, shipped
from microbench import paths
from microbench.profile import Profile
from microbench.record import Frozen, append


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
    """Every timing of a machine, and a sentence for each line that cannot be read."""
    timings: list[Timing] = []
    problems: list[str] = []
    for file in _files(gpu):
        for number, line in enumerate(file.read_text(errors="replace").splitlines(), start=1):
            if not line.strip():
                continue
            try:
                timings.append(Timing.model_validate_json(line))
            except ValidationError as error:
                why = error.errors()[0]["msg"]
                problems.append(f"{file.name}, line {number}: {why}; this line is left out, the rest is loaded.")
    return tuple(timings), tuple(problems)


def _files(gpu: str) -> list[Path]:
    files = (root / "attention" / f"{gpu}.jsonl" for root in paths.data_roots())
    return [file for file in files if file.is_file()]


def efficiencies(
    profile: Profile, timings: tuple[Timing, ...], variants: tuple[Variant, ...] | None = None
) -> dict[str, Efficiency]:
    """The median of predicted over measured seconds, over the timings that still hold, by attention.model.timed_keys.

    Tiles differ in what keeps them from their bound, and so do head dims, masks and lengths.
    """
    return calibrated(_samples(profile, timings, variants))


def _samples(profile: Profile, timings: tuple[Timing, ...], variants: tuple[Variant, ...] | None) -> list[Sample]:
    every = shipped() if variants is None else variants
    known = {variant.path: variant for variant in every}
    # torch's kernels are timed as peers, and chosen as variants.
    known |= {f"peer/{variant.name}": variant for variant in every if profile.arch in variant.archs}
    samples: list[Sample] = []
    for timing in timings:
        variant = known.get(timing.variant)
        if variant is None or (variant.owner == "smscope" and timing.source_sha256 != source_sha256(variant.path)):
            continue
        problem, config = timing.problem, Config(tuple(timing.config.items()))
        try:
            promised = predict(profile, problem, variant, config).seconds
        except Unpredicted:
            continue
        samples.append(Sample(variant, config, problem, promised, timing.seconds, timing.low, timing.high, timing.run))
    return samples


def of_machine(profile: Profile) -> dict[str, Efficiency]:
    """The efficiencies that the timings on file show for a profile's machine; computed again where a file changed."""
    return _of_machine(profile)[0]


def duels_of_machine(profile: Profile) -> tuple[Duel, ...]:
    """The duels of our kernel and torch's that are on file for a profile's machine: none but a CPU's."""
    return _of_machine(profile)[1]


def _of_machine(profile: Profile) -> tuple[dict[str, Efficiency], tuple[Duel, ...]]:
    stamps = tuple((file, (stat := file.stat()).st_mtime_ns, stat.st_size) for file in _files(profile.gpu))
    kept = _kept.get(profile.gpu)
    if kept is None or kept[0] != profile or kept[1] != stamps:
        samples = _samples(profile, read(profile.gpu)[0], None)
        kept = _kept[profile.gpu] = (profile, stamps, (calibrated(samples), duels(samples)))
    return kept[2]


_Shown = tuple[dict[str, Efficiency], tuple[Duel, ...]]
_kept: dict[str, tuple[Profile, tuple[tuple[Path, int, int], ...], _Shown]] = {}


@cache
def source_sha256(variant: str) -> str:
    """The hash of every source file of a variant's folder, by name and content."""
    digest = hashlib.sha256()
    for file in sorted((KERNELS / variant).iterdir()):
        if file.suffix in (".py", ".cu", ".cuh"):
            digest.update(file.name.encode() + b"\0" + file.read_bytes())
    return digest.hexdigest()
