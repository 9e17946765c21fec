"""Run the comparison on this GPU: check every candidate against the oracle, time them in turns, keep each timing."""

import statistics
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import numpy as np

from attention import learned, reference, timings
from attention.choose import choose
from attention.cuda import kernels
from attention.errors import UnsupportedError
from attention.identity import code_sha256
from attention.machine import machine_profile
from attention.peers import cells, timer
from attention.peers.candidates import Candidate, ours, peers, torchs
from attention.peers.cells import Cell, Tensors
from attention.problem import AttentionProblem
from attention.timing import Timing
from attention.variant import Config, Variant, shipped
from microbench import stamp
from microbench.arch import by_name
from microbench.errors import EnvironmentLacks
from microbench.report.progress import watching

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
    Raises UnknownGpu where this GPU has no profile; EnvironmentLacks where torch sees no GPU.
    """
    import torch

    if not torch.cuda.is_available():
        raise EnvironmentLacks(
            "The peers run on an NVIDIA GPU, and torch sees none here; run this on a machine that has one, with a CUDA "
            "build of torch, or leave --peers out to time the CPU's kernels."
        )
    chosen = (*cells.grid(), *cells.off_grid(), *cells.few_queries()) if which is None else tuple(which)
    run = datetime.now(UTC).strftime("%Y%m%dT%H%M%SZ")
    outcomes: list[Outcome] = []
    with watching(len(chosen)) as watcher:
        for cell in chosen:
            watcher.doing(str(cell), "checking and timing")
            for outcome in _one(cell, run, every, flex):
                if outcome.timing is not None:
                    timings.write(outcome.timing)
                tell(outcome)
                outcomes.append(outcome)
            watcher.finished()
    return outcomes


def _one(cell: Cell, run: str, every: bool, flex: bool) -> Iterator[Outcome]:
    yield from time_entries(cell, _entries(cell, every, flex), run)


def entry_of(variant: Variant, config: Config) -> Entry:
    """One configuration of a variant of ours, picked or not."""
    return Entry(ours(variant, config), variant, config)


def time_entries(cell: Cell, entries: Iterable[Entry], run: str | None = None) -> Iterator[Outcome]:
    """Check each entry, then time all that are right in turns."""
    import torch

    run = run or datetime.now(UTC).strftime("%Y%m%dT%H%M%SZ")
    given = cells.tensors(cell, "cuda")
    oracle, low = _oracle(cell, given)
    calls: dict[str, timer.Graphed] = {}
    ready: dict[str, tuple[Entry, reference.Comparison]] = {}
    for entry in entries:
        try:
            with torch.no_grad():
                call = entry.candidate.prepare(cell, given)
                error = reference.compare(_part(cell, call()), oracle, low, cell.problem.dtype)
                if not error.ok:
                    yield Outcome(cell, entry.key, None, f"wrong: {error}")
                    continue
                calls[entry.key] = timer.Graphed(call)
        except Exception as failure:  # a peer may fail in any way; the others go on
            torch.cuda.synchronize()
            yield Outcome(cell, entry.key, None, _sentence(failure))
            continue
        ready[entry.key] = (entry, error)
    for key, seconds in timer.alternate(calls).items():
        entry, error = ready[key]
        yield Outcome(cell, key, _timing(cell, run, entry, seconds, error, calls[key].captured))


def _entries(cell: Cell, every: bool, flex: bool) -> Iterator[Entry]:
    """Peers, then the configurations of ours: the best predicted of each variant, or all.

    Of few queries only what the chooser has to choose from: torch's kernels, and the best of ours.
    """
    problem = cell.problem
    yield from (Entry(candidate) for candidate in (torchs() if cell.few else peers(flex)))
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


def _part(cell: Cell, out: Any) -> Any:
    """The checked rows of an output, as float64: of the first batch, or the first packed sequence."""
    rows = cell.lengths[0] if cell.lengths else out.shape[2]
    return out[0, [0, out.shape[1] - 1], max(0, rows - ORACLE_ROWS) : rows].double().cpu().numpy()


def _oracle(cell: Cell, given: Tensors) -> tuple[Any, Any]:
    """What the oracle and torch's own low-precision math say of the checked rows."""
    import torch

    from attention.torch_private import torch_sdpa

    problem = cell.problem
    rows = cell.lengths[0] if cell.lengths else problem.seq_q
    keys = cell.lengths[0] if cell.lengths else problem.seq_kv
    first = max(0, rows - ORACLE_ROWS)
    group = problem.heads_q // problem.heads_kv
    heads = [0, problem.heads_q - 1]
    q = given.query[:1, heads, first:rows]
    k, v = (tensor[:1, [head // group for head in heads], :keys] for tensor in (given.key, given.value))
    band = problem.band(rows, keys)
    at, column = np.arange(first, rows)[:, None], np.arange(keys)[None, :]
    seen = np.ones((rows - first, keys), bool)
    if band.right is not None:
        seen &= column <= at + band.right
    if band.left is not None:
        seen &= column >= at + band.left
    arrays = (tensor.double().cpu().numpy() for tensor in (q, k, v))
    out, _ = reference.attention(*arrays, scale=problem.softmax_scale, mask=seen)
    with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH):
        mask = torch.from_numpy(seen).to(q.device)
        low = torch_sdpa(q, k, v, mask, scale=problem.softmax_scale)
    return out[0], low[0].double().cpu().numpy()


def _timing(
    cell: Cell, run: str, entry: Entry, seconds: list[float], error: reference.Comparison, captured: bool
) -> Timing:
    import torch

    problem, gpu = cell.problem, machine_profile("cuda").profile.gpu
    low, middle, high = statistics.quantiles(seconds, n=4, method="inclusive")
    shape = (problem.batch, problem.heads_q, problem.heads_kv, problem.seq_q, problem.seq_kv)
    cubin = _cubin_sha256(entry.variant, problem, entry.config) if entry.variant else None
    return Timing(
        gpu=gpu,
        measured_utc=datetime.now(UTC).isoformat(timespec="seconds"),
        shape=(*shape, problem.head_dim, problem.head_dim_v),
        dtype=problem.dtype,
        causal=problem.causal,
        window=problem.window,
        lengths=cell.lengths,
        variant=entry.candidate.name,
        config=dict(entry.config.values),
        seconds=middle,
        low=low,
        high=high,
        n=len(seconds),
        predicted_seconds=entry.predicted_seconds,
        error=error.error,
        allowed_error=error.allowed,
        threads=1,
        source_sha256=code_sha256(entry.variant.path) if entry.variant else "",
        cubin_sha256=cubin,
        run=run,
        grid=cell.grid,
        picked=entry.picked,
        captured=captured,
        packages={"torch": torch.__version__, entry.candidate.name.rpartition("/")[2]: entry.candidate.version},
        commit=stamp.commit().sha,
        dirty=stamp.commit().dirty,
    )


def _cubin_sha256(variant: Variant, problem: AttentionProblem, config: Config) -> str | None:
    """The hash of the cubin that ran, where the variant is a CUDA kernel of ours."""
    if variant.build is None:
        return None
    arch = by_name(machine_profile("cuda").profile.arch)
    return kernels.cubin_of(variant.folder, variant.build(problem, config), arch).sha256
