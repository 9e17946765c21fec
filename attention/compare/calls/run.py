"""Time attention.sdpa beside torch's function on this CPU: in turns, in one process, with no rest between the turns.

There is no rest because a model gives none: torch's threads still wait for work when our kernel begins, and the
reverse. Whoever goes first changes each round, so that neither always meets the other's caches.
"""

import os
import statistics
import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from attention.choose.explain import explain
from attention.compare.bench import installed_packages
from attention.compare.calls import results
from attention.compare.calls.shapes import SEED, Kind, drawn
from attention.errors import AttentionError, EnvironmentLacks
from attention.oracle.trials import inputs
from attention.problem import AttentionProblem
from microbench.console.progress import watching
from microbench.machine import stamp
from microbench.machine.cpu import host_slug

BURST_S = 0.5e-3  # of calls that are timed at once: the clock costs 0.1 us
SECONDS = 1.2  # for one call of the hundred
ROUNDS = (41, 401)  # of 15, two timings of torch's own function differ by 7 % on two busy cores
CLOSE = {"float32": 2e-5, "float16": 4e-3, "bfloat16": 3e-2}  # between two right results of N(0, 1) inputs


def timed(seed: int = SEED, tell: Callable[[results.CallTiming], None] | None = None) -> list[results.CallTiming]:
    """Time every call that the seed draws, and append each. Raises EnvironmentLacks, DataError, AttentionError."""
    try:
        import torch
    except ImportError as error:
        raise EnvironmentLacks("This times torch's function beside ours; `pip install torch` first.") from error
    calls = drawn(seed)
    begun, load = datetime.now(UTC).isoformat(timespec="seconds"), os.getloadavg()[0]
    rows: list[results.CallTiming] = []
    with watching(len(calls)) as watcher, torch.no_grad():
        for kind, problem in calls:
            watcher.doing(kind, str(problem))
            rows.append(_one(kind, problem, seed, begun, load))
            results.write(rows[-1:], host_slug())
            watcher.finished()
            if tell is not None:
                tell(rows[-1])
    return rows


def _one(kind: Kind, problem: AttentionProblem, seed: int, run: str, load: float) -> results.CallTiming:
    import torch

    from attention.frontends.sdpa import sdpa

    query, key, value = inputs(problem)
    theirs = torch._C._nn.scaled_dot_product_attention  # by whatever name others replaced it
    options: dict[str, Any] = {"is_causal": problem.causal, "enable_gqa": problem.heads_q != problem.heads_kv}
    difference = (sdpa(query, key, value, **options) - theirs(query, key, value, **options)).abs().max().item()
    if not difference <= CLOSE[problem.dtype]:
        raise AttentionError(f"attention.sdpa and torch differ by {difference:.1e} on {problem}; please report it.")
    ours_called, theirs_called = (_calling(each, query, key, value, **options) for each in (sdpa, theirs))
    burst, ours, torchs = in_turns(ours_called, theirs_called)
    low, middle, high = statistics.quantiles(ours, n=4, method="inclusive")
    torch_low, torch_middle, torch_high = statistics.quantiles(torchs, n=4, method="inclusive")
    shape = (problem.batch, problem.heads_q, problem.heads_kv, problem.seq_q, problem.seq_kv)
    return results.CallTiming(
        gpu=host_slug(),
        measured_utc=datetime.now(UTC).isoformat(timespec="seconds"),
        run=run,
        seed=seed,
        kind=kind,
        shape=(*shape, problem.head_dim, problem.head_dim_v),
        dtype=problem.dtype,
        causal=problem.causal,
        variant=explain(query, key, value, is_causal=problem.causal, enable_gqa=True).choice.pick.variant,
        seconds=middle,
        low=low,
        high=high,
        torch_seconds=torch_middle,
        torch_low=torch_low,
        torch_high=torch_high,
        rounds=len(ours),
        burst=burst,
        largest_difference=difference,
        threads=torch.get_num_threads(),
        load_average=load,
        packages=installed_packages(),
        commit=stamp.commit().sha,
        dirty=stamp.commit().dirty,
    )


def _calling(
    function: Callable[..., Any], query: Any, key: Any, value: Any, is_causal: bool, enable_gqa: bool
) -> Callable[[int], None]:
    """A number of calls as a user writes them: what is False is left out, and no dict of options is unpacked."""

    def plain(times: int) -> None:
        for _ in range(times):
            function(query, key, value)

    def causal(times: int) -> None:
        for _ in range(times):
            function(query, key, value, is_causal=True)

    def grouped(times: int) -> None:
        for _ in range(times):
            function(query, key, value, enable_gqa=True)

    def both(times: int) -> None:
        for _ in range(times):
            function(query, key, value, is_causal=True, enable_gqa=True)

    return {(False, False): plain, (True, False): causal, (False, True): grouped}.get((is_causal, enable_gqa), both)


def in_turns(
    ours: Callable[[int], None], theirs: Callable[[int], None], seconds: float = SECONDS
) -> tuple[int, list[float], list[float]]:
    """Calls in a burst, and the seconds of one call by each burst of both."""
    for called in (ours, theirs):
        called(2)  # compile, load, warm up
    burst = max(1, int(BURST_S / _seconds(theirs, 3)))
    once = burst * (_seconds(ours, burst) + _seconds(theirs, burst))
    fewest, most = ROUNDS
    found: tuple[list[float], list[float]] = ([], [])
    for turn in range(max(fewest, min(most, int(seconds / once)))):
        for which in (0, 1) if turn % 2 else (1, 0):
            found[which].append(_seconds((ours, theirs)[which], burst))
    return burst, *found


def _seconds(called: Callable[[int], None], times: int) -> float:
    start = time.perf_counter()
    called(times)
    return (time.perf_counter() - start) / times
