"""The file boundary of attention timings: data/attention/<gpu>.jsonl, one measured candidate a line, append-only.

They also correct the model: predicted over measured, the median over the timings of the nearest problems on this
machine, is an efficiency. A timing of our own kernel counts only while the code is what was timed (attention.identity).
"""

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Literal

from pydantic import Field, ValidationError

from attention import timing_faults
from attention.calibration import Duel, Sample, calibrated, duels
from attention.corrections import Corrections
from attention.identity import same_code
from attention.model import Unpredicted, predict
from attention.problem import AttentionProblem
from attention.variant import Config, Variant, shipped
from microbench import faults, paths
from microbench.profile import Profile, advising
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
    for file in _files(gpu):
        sound, wrong = _read(file)
        timings += sound.values()
        problems += [
            f"{file.name}, line {line}: {why}; this line is left out, the rest is loaded."
            for line, why in wrong.items()
        ]
    return tuple(timings), tuple(problems)


def _read(file: Path) -> tuple[dict[int, Timing], dict[int, str]]:
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


def _files(gpu: str) -> list[Path]:
    files = (root / "attention" / f"{gpu}.jsonl" for root in paths.data_roots())
    return [file for file in files if file.is_file()]


def efficiencies(
    profile: Profile, timings: tuple[Timing, ...], variants: tuple[Variant, ...] | None = None
) -> Corrections:
    """What the timings that still hold say of this profile's predictions.

    Tiles differ in what keeps them from their bound, and so do head dims, masks and lengths. A timing from which no
    efficiency follows does not count.
    """
    known = _known(profile, variants)
    judged = (_judged(profile, timing, known) for timing in timings)
    return calibrated(each for each in judged if isinstance(each, Sample))


def _known(profile: Profile, variants: tuple[Variant, ...] | None = None) -> dict[str, Variant]:
    every = shipped() if variants is None else variants
    # torch's kernels are timed as peers, and chosen as variants.
    peers = {f"peer/{variant.name}": variant for variant in every if profile.arch in variant.archs}
    return {variant.path: variant for variant in every} | peers


def _judged(profile: Profile, timing: Timing, known: dict[str, Variant]) -> Sample | str | None:
    """What a timing shows; None where it no longer holds or nothing is predicted, a sentence where it is faulty."""
    variant = known.get(timing.variant)
    if variant is None or (variant.owner == "smscope" and not same_code(timing.source_sha256, variant.path)):
        return None
    if fault := timing_faults.of_config(timing, variant):
        return fault
    config = Config(tuple((axis, timing.config[axis]) for axis, _ in variant.space))
    try:
        promised = predict(profile, timing.problem, variant, config).seconds
    except Unpredicted:
        return None
    except Exception as error:  # a line is advice: no call fails for what a formula makes of it
        return f"nothing can be predicted of it ({type(error).__name__}: {error})"
    sample = Sample(variant, config, timing.problem, promised, timing.seconds, timing.low, timing.high, timing.run)
    return timing_faults.of_efficiency(promised / timing.seconds) or sample


def of_machine(profile: Profile) -> Corrections:
    """What timings on this kind of machine say; derived again where a file has changed.

    A GPU whose own timings do not compare our kernels with torch's takes those of the nearest GPU of its architecture.
    A DataWarning names each line that cannot be right, once for each file.
    """
    own = _of(profile)
    if profile.arch == HOST or own.compares:
        return own.corrections
    every = _of_arch(profile.arch, tuple(paths.data_roots()))
    siblings = sorted(every, key=lambda each: (abs(each.sm_count - profile.sm_count), each.gpu))
    return next((found.corrections for each in siblings if (found := _of(each)).compares), own.corrections)


@cache
def _of_arch(arch: str, _roots: tuple[Path, ...]) -> tuple[Profile, ...]:
    """Read once from the same folders: a choice asks for them each time, and reading takes longer than choosing."""
    return tuple(each for each in advising() if each.arch == arch)


def duels_of_machine(profile: Profile) -> tuple[Duel, ...]:
    """The duels of our kernel and torch's that are on file for a profile's machine: none but a CPU's."""
    return _of(profile).duels if profile.arch == HOST else ()


@dataclass(frozen=True)
class _Derived:
    """What a machine's files said when they were as `stamps` have them; `compares`: ours and torch's were timed."""

    profile: Profile
    stamps: tuple[tuple[Path, int, int], ...]
    corrections: Corrections
    duels: tuple[Duel, ...]
    compares: bool


_kept: dict[str, _Derived] = {}


def _of(profile: Profile) -> _Derived:
    stamps = tuple(_stamps(profile.gpu))
    kept = _kept.get(profile.gpu)
    # Comparing two profiles constant by constant takes longer than a choice.
    if kept is not None and kept.stamps == stamps and (kept.profile is profile or kept.profile == profile):
        return kept
    known, samples = _known(profile), list[Sample]()
    for file in _files(profile.gpu):
        sound, wrong = _read(file)
        for line, timing in sound.items():
            found = _judged(profile, timing, known)
            if isinstance(found, Sample):
                samples.append(found)
            elif found is not None:
                wrong[line] = found
        faults.leave_out(file, [f"line {line}: {wrong[line]}" for line in sorted(wrong)])
    compares = {"smscope", "torch"} <= {each.variant.owner for each in samples}
    _kept[profile.gpu] = _Derived(profile, stamps, calibrated(samples), duels(samples), compares)
    return _kept[profile.gpu]


def _stamps(gpu: str) -> Iterator[tuple[Path, int, int]]:
    for file in _files(gpu):
        with suppress(OSError):  # gone since
            stat = file.stat()
            yield file, stat.st_mtime_ns, stat.st_size
