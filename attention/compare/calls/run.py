"""Time attention.sdpa beside torch's function on this CPU: in turns, in one process, with no rest between the turns.

There is no rest because a model gives none: torch's threads still wait for work when our kernel begins, and the
reverse. The order is drawn anew each round, so that neither always meets the other's caches.
"""

import os
import statistics
from collections.abc import Callable
from contextlib import closing
from datetime import UTC, datetime
from typing import Any

from attention.choose.explain.explain import explain
from attention.compare.bench import installed_packages
from attention.compare.calls import results
from attention.compare.calls.shapes import SEED, Kind, drawn
from attention.errors import ADDS_TORCH, AttentionError, EnvironmentLacks
from attention.oracle.trials import inputs
from attention.problem import AttentionProblem
from microbench.console.progress import watching
from microbench.device.host import HostDevice
from microbench.machine import stamp
from microbench.machine.cpu import host_slug
from microbench.measure import turns

# Of 15 rounds, two timings of torch's own function differ by 7 % on two busy cores. The clock costs 0.1 us a burst.
ROUNDS = turns.Rounds(fewest=41, most=401, longest_s=0.6, burst_s=0.5e-3)
CLOSE = {"float32": 2e-5, "float16": 4e-3, "bfloat16": 3e-2}  # between two right results of N(0, 1) inputs


def timed(seed: int = SEED) -> list[results.CallTiming]:
    """Time every call that the seed draws, and append each. Raises EnvironmentLacks, DataError, AttentionError."""
    try:
        import torch
    except ImportError as error:
        raise EnvironmentLacks(f"This times torch's function beside ours, and it is not here; {ADDS_TORCH}.") from error
    calls = drawn(seed)
    begun, load = datetime.now(UTC).isoformat(timespec="seconds"), os.getloadavg()[0]
    rows: list[results.CallTiming] = []
    with watching(len(calls)) as watcher, closing(HostDevice()) as device, torch.no_grad():
        for kind, problem in calls:
            watcher.doing(kind, str(problem))
            rows.append(_one(device, kind, problem, seed, begun, load))
            results.write(rows[-1:], host_slug())
            watcher.finished()
    return rows


def _one(
    device: HostDevice, kind: Kind, problem: AttentionProblem, seed: int, run: str, load: float
) -> results.CallTiming:
    import torch

    from attention.frontends.sdpa import sdpa

    query, key, value = inputs(problem)
    torchs = torch._C._nn.scaled_dot_product_attention  # by whatever name others replaced it
    calls = {name: _call(each, query, key, value, problem) for name, each in (("ours", sdpa), ("torch", torchs))}
    difference = (calls["ours"]() - calls["torch"]()).abs().max().item()
    if not difference <= CLOSE[problem.dtype]:
        raise AttentionError(f"attention.sdpa and torch differ by {difference:.1e} on {problem}; please report it.")
    timed = turns.in_turns(device, calls, f"{run} {problem}", ROUNDS)
    ours, theirs = timed["ours"], timed["torch"]
    low, middle, high = statistics.quantiles(ours.seconds, n=4, method="inclusive")
    torch_low, torch_middle, torch_high = statistics.quantiles(theirs.seconds, n=4, method="inclusive")
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
        rounds=len(ours.seconds),
        burst=ours.burst,
        clock_mhz=ours.clock_mhz,
        flags=ours.flags,
        largest_difference=difference,
        threads=torch.get_num_threads(),
        load_average=load,
        packages=installed_packages(),
        commit=stamp.commit().sha,
        dirty=stamp.commit().dirty,
    )


def _call(function: Callable[..., Any], query: Any, key: Any, value: Any, problem: AttentionProblem) -> turns.Call:
    """A call as a user writes it: what is False is left out, and no dict of options is unpacked, which takes 0.2 us."""
    grouped = problem.heads_q != problem.heads_kv
    if problem.causal and grouped:
        return lambda: function(query, key, value, is_causal=True, enable_gqa=True)
    if problem.causal:
        return lambda: function(query, key, value, is_causal=True)
    if grouped:
        return lambda: function(query, key, value, enable_gqa=True)
    return lambda: function(query, key, value)
