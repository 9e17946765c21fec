"""Time our candidates beside torch's on this machine: one process, one timer, alternating, medians.

Every candidate is checked against the float64 oracle before it is timed; a wrong one is named and not timed.
"""

import statistics
from collections.abc import Callable
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from importlib import metadata
from typing import Any

import numpy as np

from attention import learned, reference, rounding, timings
from attention.choose import Candidate, choose
from attention.errors import EnvironmentLacks
from attention.identity import text_sha256
from attention.machine import machine_profile
from attention.problem import AttentionProblem
from attention.timing import Timing
from attention.variant import by_path
from microbench import stamp
from microbench.device.cpu import cores, host_slug
from microbench.device.host import HostDevice, trouble, usage
from microbench.measure import turns
from microbench.measure.timed import Timed
from microbench.report.progress import watching

ORACLE_ROWS = 256  # queries that the oracle checks, the last ones: under causal they see the most keys
PACKAGES = ("smscope", "torch", "numba", "llvmlite", "numpy")


@dataclass(frozen=True)
class Measured:
    """One candidate of one problem. `timing` is None where the result was wrong, and `failure` says how wrong.

    `disturbed` says who else had the cores meanwhile: such timings are not kept, since choices would rest on them.
    """

    problem: AttentionProblem
    candidate: Candidate
    timing: Timing | None
    failure: str | None = None
    picked: bool = False
    disturbed: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        return f"{self.candidate.variant.rpartition('/')[2]} {self.candidate.config}"


def bench(
    problems: list[AttentionProblem], *, only: str | None = None, every: bool = False, unpredicted: bool = True
) -> list[Measured]:
    """Time each problem's candidates on this CPU: the best predicted of each variant, or `every` configuration.

    Without `unpredicted`, only kernels that are predicted: the timings of others correct nothing, and take long.
    Appends what was measured to data/attention/<this machine>.jsonl. Raises EnvironmentLacks, UnsupportedError.
    """
    try:
        import torch
    except ImportError as error:
        raise EnvironmentLacks("The bench times torch's kernel beside ours; `pip install torch` first.") from error
    work = [(problem, _candidates(problem, only, every, unpredicted)) for problem in problems]
    measured: list[Measured] = []
    begun, before = datetime.now(UTC).isoformat(timespec="seconds"), usage()
    with (
        watching(sum(len(candidates) for _, candidates in work)) as watcher,
        closing(HostDevice()) as device,
        torch.no_grad(),
    ):
        for problem, candidates in work:
            watcher.doing(str(problem), "checking and timing")
            measured += _bench_one(device, problem, candidates, begun, watcher.finished)
    disturbed = trouble(before, usage(), len(cores()))
    for each in measured:
        if each.timing is not None and not disturbed:
            timings.write(each.timing)
    for path in {each.candidate.variant for each in measured}:
        by_path(path).prepare()  # in every dtype, so that no call has to
    return [replace(each, disturbed=disturbed) for each in measured]


def _candidates(
    problem: AttentionProblem, only: str | None, every: bool, unpredicted: bool
) -> list[tuple[Candidate, bool]]:
    profile = machine_profile("cpu").profile
    known, duels = learned.of_machine(profile), learned.duels_of_machine(profile)
    choice = choose(profile, problem, only=only, efficiencies=known, duels=duels)
    wanted: dict[str, Candidate] = {}
    for candidate in choice.candidates if every else (choice.pick, *choice.candidates):
        if unpredicted or candidate.prediction is not None:
            wanted.setdefault(f"{candidate.variant} {candidate.config}" if every else candidate.variant, candidate)
    return [(candidate, candidate == choice.pick) for candidate in wanted.values()]


def _bench_one(
    device: HostDevice,
    problem: AttentionProblem,
    candidates: list[tuple[Candidate, bool]],
    run_id: str,
    finished: Callable[[], None],
) -> list[Measured]:
    query, key, value = inputs(problem)
    calls: dict[int, Callable[[], Any]] = {}
    errors: dict[int, reference.Comparison] = {}
    failures: dict[int, str] = {}
    oracle, low, bound = _oracle(problem, query, key, value)
    for index, (candidate, _) in enumerate(candidates):
        run, config = by_path(candidate.variant).load(), candidate.config

        def call(run: Any = run, config: Any = config) -> Any:
            return run(query, key, value, problem, config)

        errors[index] = reference.compare(_checked_part(call()[0]), oracle, low, problem.dtype, bound)
        if errors[index].ok:
            calls[index] = call
        else:
            failures[index] = f"wrong: {errors[index]}"
    timed = turns.in_turns(device, calls, f"{run_id} {problem}") if calls else {}
    found = []
    for index, (candidate, picked) in enumerate(candidates):
        finished()
        timing = _timing(problem, candidate, timed[index], errors[index], run_id) if index in timed else None
        found.append(Measured(problem, candidate, timing, failures.get(index), picked))
    return found


def inputs(problem: AttentionProblem, seed: int = 0) -> tuple[Any, Any, Any]:
    """N(0, 1) query, key and value as torch tensors (B, H, S, D) in the problem's dtype."""
    import torch

    generator = torch.Generator().manual_seed(seed)
    dtype = getattr(torch, problem.dtype)
    shapes = (
        (problem.batch, problem.heads_q, problem.seq_q, problem.head_dim),
        (problem.batch, problem.heads_kv, problem.seq_kv, problem.head_dim),
        (problem.batch, problem.heads_kv, problem.seq_kv, problem.head_dim_v),
    )
    q, k, v = (torch.randn(shape, generator=generator).to(dtype) for shape in shapes)
    return q, k, v


def _checked_part(out: Any) -> Any:
    """The last queries of the first and last head of the first batch, as float64."""
    heads = [0, out.shape[1] - 1]
    return out[0, heads, -ORACLE_ROWS:].double().numpy()


def _oracle(problem: AttentionProblem, query: Any, key: Any, value: Any) -> tuple[Any, Any, float]:
    """The oracle's and torch's own result of the checked part, and what rounding may do to it in this precision."""
    import torch

    from attention.torch_private import torch_sdpa

    group = problem.heads_q // problem.heads_kv
    heads_q = [0, problem.heads_q - 1]
    q = query[:1, heads_q, -ORACLE_ROWS:]
    k, v = (tensor[:1, [head // group for head in heads_q]] for tensor in (key, value))
    first = problem.seq_q - q.shape[2]
    seen = np.tri(q.shape[2], problem.seq_kv, first, dtype=bool) if problem.causal else None
    arrays = [tensor.double().numpy() for tensor in (q, k, v)]
    out, _ = reference.attention(*arrays, scale=problem.softmax_scale, mask=seen)
    mask = None if seen is None else torch.from_numpy(seen)
    low = torch_sdpa(q, k, v, mask, scale=problem.softmax_scale)
    bound = 0.0
    if problem.dtype in rounding.UNIT:
        exact = (rounding.Rounded.exact(array, problem.dtype) for array in arrays)
        bound = float(rounding.attention(*exact, scale=problem.softmax_scale, seen=seen)[1].error.max(initial=0.0))
    return out[0], low[0].double().numpy(), bound


def _timing(
    problem: AttentionProblem, candidate: Candidate, timed: Timed, error: reference.Comparison, run: str
) -> Timing:
    import torch

    low, middle, high = statistics.quantiles(timed.seconds, n=4, method="inclusive")
    shape = (problem.batch, problem.heads_q, problem.heads_kv, problem.seq_q, problem.seq_kv)
    return Timing(
        gpu=host_slug(),
        measured_utc=datetime.now(UTC).isoformat(timespec="seconds"),
        shape=(*shape, problem.head_dim, problem.head_dim_v),
        dtype=problem.dtype,
        causal=problem.causal,
        variant=candidate.variant,
        config=dict(candidate.config.values),
        seconds=middle,
        low=low,
        high=high,
        n=len(timed.seconds),
        clock_mhz=round(timed.clock_mhz, 1),
        flags=timed.flags,
        predicted_seconds=candidate.prediction.seconds if candidate.prediction else None,
        error=error.error,
        allowed_error=error.allowed,
        threads=torch.get_num_threads(),
        source_sha256=text_sha256(candidate.variant),
        packages=installed_packages(),
        run=run,
        commit=stamp.commit().sha,
        dirty=stamp.commit().dirty,
    )


def installed_packages() -> dict[str, str]:
    found: dict[str, str] = {}
    for name in PACKAGES:
        with suppress(metadata.PackageNotFoundError):
            found[name] = metadata.version(name)
    return found
