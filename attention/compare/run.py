"""Run the comparison on this GPU: check every candidate against the oracle, time them in turns, keep each timing."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from attention.choose import learned
from attention.choose.choose import choose
from attention.choose.machine import machine_profile
from attention.compare import cells, rows
from attention.compare.candidates import Candidate, of_torch, ours, peers
from attention.compare.cells import Cell
from attention.compare.graphed import Graphed
from attention.errors import UnsupportedError
from attention.kernels.launch import loaded
from attention.oracle import reference, trials
from attention.problem import AttentionProblem
from attention.timed import timings
from attention.timed.identity import text_sha256
from attention.timed.timing import STEPS, Timing
from attention.variant import Config, Variant, shipped
from microbench.console.progress import watching
from microbench.device.cuda import CudaDevice
from microbench.errors import NoGpu
from microbench.machine.arch import Machine, by_name
from microbench.measure.alternate import alternate
from microbench.measure.timed import Timed

FEW_TIMED = 3  # configurations of a variant that a cell of few queries times
ORACLE_ROWS = 128  # the last queries of the first and last head: under causal they see the most keys


@dataclass(frozen=True)
class Outcome:
    """One candidate of one cell: its timing, or why there is none."""

    cell: Cell
    name: str
    timing: Timing | None
    reason: str | None = None

    @property
    def tflops(self) -> float | None:
        """Speed, by the cell's FLOPs."""
        return self.cell.flops / self.timing.seconds / 1e12 if self.timing else None

    @property
    def cells(self) -> tuple[object, ...]:
        """A line of the table."""
        if self.timing is None or self.tflops is None:
            return str(self.cell), self.name, "", "", self.reason or ""
        note = "picked" if self.timing.picked else ""
        return str(self.cell), self.name, f"{self.timing.seconds * 1e6:.0f} µs", f"{self.tflops:.0f} TFLOPS", note

    @property
    def row(self) -> dict[str, object]:
        """The same for machines."""
        seconds = self.timing.seconds if self.timing else None
        return {
            "problem": str(self.cell),
            "candidate": self.name,
            "seconds": seconds,
            "tflops": self.tflops,
            "reason": self.reason,
        }


@dataclass(frozen=True)
class Entry:
    """A candidate, and which configuration of which variant it is where it is ours."""

    candidate: Candidate
    variant: Variant | None = None
    config: Config = field(default_factory=Config)
    picked: bool = False
    predicted_seconds: float | None = None

    @property
    def key(self) -> str:
        """Name and configuration."""
        return f"{self.candidate.name} {self.config}"


def compare(
    which: Sequence[Cell] | None = None, *, every: bool = False, flex: bool = True, tell: Callable[[Outcome], None]
) -> list[Outcome]:
    """Time every cell on the current GPU, and append what was timed to data/attention/<gpu>.jsonl.

    every: all legal configurations of our variants, not the best predicted of each alone.
    Raises UnknownGpu where this GPU has no profile; NoGpu where torch sees none.
    """
    import torch

    if not torch.cuda.is_available():
        raise NoGpu(
            "The peers run on an NVIDIA GPU, and torch sees none here; run this on a machine that has one, with a CUDA "
            "build of torch, or leave --peers out to time the CPU's kernels."
        )
    chosen = (*cells.grid(), *cells.off_grid(), *cells.few_queries()) if which is None else tuple(which)
    run, device = rows.new_run(), opened()
    outcomes: list[Outcome] = []
    with watching(len(chosen)) as watcher:
        for cell in chosen:
            watcher.doing(str(cell), "checking and timing")
            for outcome in time_entries(device, cell, entries(cell, every, flex), run):
                if outcome.timing is not None:
                    timings.write(outcome.timing)
                tell(outcome)
                outcomes.append(outcome)
            watcher.finished()
    return outcomes


def entry_of(variant: Variant, config: Config) -> Entry:
    """One configuration of a variant of ours, picked or not."""
    return Entry(ours(variant, config), variant, config)


def opened() -> CudaDevice:
    """The GPU that torch uses, as probes are measured on it. Raises microbench.errors.EnvironmentLacks."""
    import torch

    return CudaDevice(torch.cuda.current_device())


def time_entries(device: CudaDevice, cell: Cell, entries: Iterable[Entry], run: str | None = None) -> Iterator[Outcome]:
    """Check each entry, then time all that are right in turns; peers and the pick for a second alone as well."""
    import torch

    run = run or rows.new_run()
    given = cells.tensors(cell, "cuda")
    problem = cell.first
    query, key, value = (_first(cell, each) for each in (given.query, given.key, given.value))
    oracle, low, _ = trials.oracle_of(problem, query, key, value, ORACLE_ROWS)
    calls: dict[str, Graphed] = {}
    ready: dict[str, tuple[Entry, reference.Comparison]] = {}
    for entry in entries:
        try:
            with torch.no_grad():
                call = entry.candidate.prepare(cell.problem, given)
                part = trials.checked_part(_first(cell, call()), ORACLE_ROWS)
                error = reference.compare(part, oracle, low, problem.dtype)
                if not error.ok:
                    yield Outcome(cell, entry.key, None, f"wrong: {error}")
                    continue
                calls[entry.key] = Graphed(call)
        except Exception as failure:  # a peer may fail in any way; the others go on
            torch.cuda.synchronize()
            yield Outcome(cell, entry.key, None, _sentence(failure))
            continue
        ready[entry.key] = (entry, error)
    replays = {key: call.replay for key, call in calls.items()}
    alone = [key for key, (entry, _) in ready.items() if not cell.few and (entry.variant is None or entry.picked)]
    stream = torch.cuda.current_stream().cuda_stream
    for key, timed in alternate(device, replays, run, stream, sustained=alone).items():
        entry, error = ready[key]
        yield Outcome(cell, key, _timing(device.machine, cell, run, entry, timed, error, calls[key].captured))


def entries(cell: Cell, every: bool, flex: bool) -> Iterator[Entry]:
    """Peers, then the configurations of ours: the best predicted of each variant, or all.

    Of few queries only what the chooser has to choose from: torch's kernels, and the best of ours.
    """
    problem = cell.problem
    yield from (Entry(candidate) for candidate in (of_torch() if cell.few else peers(flex)))
    profile = machine_profile("cuda").profile
    efficiencies = learned.of_machine(profile)
    arch = by_name(profile.arch)
    own = tuple(variant for variant in shipped() if variant.owner == "smscope" and arch.name in variant.archs)
    picked = ""
    try:
        pick = choose(profile, problem, only="smscope", efficiencies=efficiencies).pick
        picked = f"{pick.variant} {pick.config}"
    except UnsupportedError:
        return
    for variant in own:
        if variant.refusal(problem, arch):
            continue
        try:
            choice = choose(profile, problem, variants=(variant,), efficiencies=efficiencies)
        except UnsupportedError:
            continue
        for each in choice.candidates[:FEW_TIMED] if cell.few else choice.candidates if every else (choice.pick,):
            seconds = each.prediction.seconds if each.prediction else None
            yield Entry(
                ours(variant, each.config),
                variant,
                each.config,
                f"{variant.path} {each.config}" == picked,
                seconds,
            )


def _sentence(failure: Exception) -> str:
    lines = str(failure).splitlines()
    return lines[0][:200] if lines else repr(failure)


def _first(cell: Cell, tensor: Any) -> Any:
    """Of packed sequences the first alone, as that of which results are checked."""
    return tensor[:, :, : cell.lengths[0]] if cell.lengths else tensor


def _timing(
    machine: Machine, cell: Cell, run: str, entry: Entry, timed: Timed, error: reference.Comparison, captured: bool
) -> Timing:
    import torch

    name = entry.candidate.name
    return rows.row(
        machine,
        cell,
        name,
        timed,
        error,
        run=run,
        captured=captured,
        packages={"torch": torch.__version__, name.rpartition("/")[2]: entry.candidate.version},
        config=entry.config,
        cubin_sha256=_cubin_sha256(entry.variant, cell.problem, entry.config) if entry.variant else None,
        # By its text a timing holds where the NVRTC that tells one text's cubins from another's is not at hand.
        source_sha256=text_sha256(entry.variant.path) if entry.variant else "",
        picked=entry.picked,
        predicted_seconds=entry.predicted_seconds,
    )


def _cubin_sha256(variant: Variant, problem: AttentionProblem, config: Config) -> str | None:
    """The hash of the cubin that ran, where the variant is a CUDA kernel of ours."""
    arch = by_name(machine_profile("cuda").profile.arch)
    made = (loaded.cubin_of(variant.folder, step, arch).sha256 for step in variant.steps(problem, config))
    return STEPS.join(made) or None
