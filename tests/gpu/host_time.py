"""What a call costs the host: microseconds of an eager call, where the GPU's part is shorter.

python -m tests.gpu.host_time build       the kernels into the cache; needs NVRTC, no GPU
python -m tests.gpu.host_time OUT.json
"""

import json
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

from attention.choose.choose import choose
from attention.errors import AttentionError
from attention.problem import AttentionProblem
from attention.variant import by_path
from attention.verify.builds import ARCH, Build, tuned
from microbench.compile import Source
from microbench.compile.together import compile_together
from microbench.machine import stamp
from microbench.machine.arch import by_name
from microbench.results.profile import Profile

# A few microseconds of any GPU.
SMALL = AttentionProblem(1, 2, 2, 64, 64, 128, dtype="bfloat16", device="cuda")
PROFILE = "h200-sxm-141gb"
CALLS, ROUNDS = 200, 25  # a stream takes about a thousand launches before the host waits


def sources() -> tuple[Source, ...]:
    """Kernels that these calls need: those of forward(), and those that attention.sdpa picks."""
    picked = [_picked(replace(SMALL, causal=causal)) for causal in (False, True)]
    found = [*(_first(path) for path in tuned()), *(build for build in picked if build is not None)]
    return tuple(source for build in found for source in build.sources)


def _first(path: str) -> Build:
    """A variant's first legal configuration."""
    variant, arch = by_path(path), by_name(ARCH)
    legal = (c for c in variant.configs() if variant.illegal is None or variant.illegal(SMALL, c, arch) is None)
    return Build(path, (97, 128), SMALL.dtype, next(legal), frozenset())


def _picked(problem: AttentionProblem) -> Build | None:
    try:
        pick = choose(Profile.load(PROFILE), problem, only="smscope").pick
    except AttentionError:
        return None
    if pick.variant not in tuned():
        return None
    return Build(pick.variant, (97, 128), problem.dtype, pick.config, frozenset({"CAUSAL"} if problem.causal else ()))


@dataclass(frozen=True)
class Call:
    """What is called, who serves it, and what is on around the calls of a round."""

    what: str
    served_by: str
    make: Callable[[], Any]
    around: Callable[[], AbstractContextManager[Any]] = nullcontext


def calls() -> Iterator[Call]:
    """Everything timed."""
    import torch

    import attention

    torch_sdpa, sdpa, flash = (
        torch.nn.functional.scaled_dot_product_attention,
        attention.sdpa,
        attention.flash_attn_func,
    )
    q, k, v = (torch.randn(1, 2, 64, 128, device="cuda", dtype=torch.bfloat16) for _ in range(3))
    gq, gk, gv = (each.clone().requires_grad_() for each in (q, k, v))
    packed = tuple(each.transpose(1, 2).contiguous() for each in (q, k, v))
    trained = tuple(each.clone().requires_grad_() for each in packed)
    for path in tuned():
        forward, config = by_path(path).load(), _first(path).config
        yield Call(f"forward of {path}", path, lambda f=forward, c=config: f(q, k, v, SMALL, c))  # type: ignore[misc]
    yield Call("torch sdpa", "torch", lambda: torch_sdpa(q, k, v))
    yield Call("torch sdpa with grad", "torch", lambda: torch_sdpa(gq, gk, gv))
    yield Call("torch sdpa, a default device set", "torch", lambda: torch_sdpa(q, k, v), _default_device)
    ours = attention.explain(q, k, v, only="smscope").choice.pick.variant
    yield Call("attention.sdpa", ours, lambda: sdpa(q, k, v, only="smscope"))
    yield Call("attention.sdpa with grad", ours, lambda: sdpa(gq, gk, gv, only="smscope"))
    yield Call("attention.sdpa, a default device set", ours, lambda: sdpa(q, k, v, only="smscope"), _default_device)
    yield Call("attention.flash_attn_func", ours, lambda: flash(*packed, only="smscope"))
    yield Call("attention.flash_attn_func with grad", ours, lambda: flash(*trained, only="smscope"))
    yield Call(
        "attention.flash_attn_func, a default device set",
        ours,
        lambda: flash(*packed, only="smscope"),
        _default_device,
    )
    yield from _of_features(q, k, v)
    chosen = attention.explain(q, k, v).choice.pick.variant
    yield Call("attention.sdpa, the choice left open", chosen, lambda: sdpa(q, k, v))
    yield Call("attention.sdpa with grad, the choice left open", chosen, lambda: sdpa(gq, gk, gv))


def _of_features(q: Any, k: Any, v: Any) -> Iterator[Call]:
    """Calls of ours that bring tensors of features, or of whose causality torch makes a mask: (B, H, S, D) tensors."""
    import torch
    from torch.nn.attention.bias import causal_lower_right

    import attention

    heads, rows = q.shape[1:3]
    rows_of_heads = tuple(each.transpose(1, 2).contiguous() for each in (q, k, v))
    packed = tuple(each[0] for each in rows_of_heads)
    starts, used = (torch.tensor(each, device="cuda", dtype=torch.int32) for each in ([0, rows], [rows - 3]))
    masks = {
        "a bool mask": torch.ones(rows, rows, device="cuda", dtype=torch.bool).tril(),
        "a float mask": torch.zeros(1, heads, rows, rows, device="cuda", dtype=q.dtype),
        "CausalBias": causal_lower_right(4, rows),
    }
    features = {
        "alibi_slopes": {"alibi_slopes": torch.ones(heads, device="cuda")},
        "s_aux in 16 bits": {"s_aux": torch.ones(heads, device="cuda", dtype=q.dtype)},
        "seqused_k": {"seqused_k": used},
        "lse": {"return_lse": True},
    }

    def call(what: str, make: Callable[[], Any]) -> Call:
        return Call(f"attention.{what}", "smscope", make)

    for name, mask in masks.items():
        query = q[:, :, :4] if name == "CausalBias" else q
        yield call(f"sdpa with {name}", partial(attention.sdpa, query, k, v, mask, only="smscope"))
    for name, asked in features.items():
        yield call(
            f"flash_attn_func with {name}",
            partial(attention.flash_attn_func, *rows_of_heads, causal=True, only="smscope", **asked),
        )
    lengths = (starts, starts, rows, rows)
    yield call(
        "flash_attn_varlen_func",
        partial(attention.flash_attn_varlen_func, *packed, *lengths, causal=True, only="smscope"),
    )


def _default_device() -> AbstractContextManager[Any]:
    """As torch.set_default_device, whose device is a mode for functions until another one is set."""
    import torch

    return torch.device("cuda")


def choices() -> Iterator[tuple[str, Callable[[int], Any]]]:
    """(what, the choice of its n-th shape): what a call costs that has not been seen, beside a call that has."""
    import torch

    from attention.frontends import route as router

    device = torch.device("cuda", torch.cuda.current_device())
    options = (None, 0.0, False, False, None, True, "", False, False)

    def route(heads: int, keys: int) -> None:
        query, key = (
            (torch.Size(shape), torch.bfloat16, device) for shape in ((1, 8 * heads, 1, 128), (1, heads, keys, 128))
        )
        router._route(query, key, key, *options)

    route(8, 20_000)
    yield "choice for a new length of a known class", lambda n: route(8, 20_001 + n)
    yield "choice for a new class", lambda n: route(9 + n, 20_000)


def fresh_microseconds(choose_nth: Callable[[int], Any]) -> dict[str, float]:
    """Of calls whose shape is new each time, and in turns with them of a yardstick.

    Other work on the same core slows both by 1.7.
    """
    found, beside = [], []
    for n in range(CALLS):
        started = time.perf_counter()
        choose_nth(n)
        ended = time.perf_counter()
        yardstick()
        found.append((ended - started) * 1e6)
        beside.append((time.perf_counter() - ended) * 1e6)
    return _spread(found) | {"yardstick_us": round(statistics.median(beside), 2)}


def yardstick() -> None:
    """A fixed piece of Python: 320 us on the development machine where nothing else runs."""
    kept: dict[int, tuple[int, str]] = {}
    for i in range(3000):
        kept[i % 7] = (i, str(i))


def microseconds(every: Sequence[Call]) -> list[list[float]]:
    """Of each call its rounds, which nothing waits for. A round has them all: a host's slow minute meets each alike."""
    import torch

    found: list[list[float]] = [[] for _ in every]
    for turn in range(-1, ROUNDS):  # the first warms up
        for n in sorted(range(len(every)), key=lambda n: (n + turn) % len(every)):
            make = every[n].make
            torch.cuda.synchronize()
            with every[n].around():
                started = time.perf_counter()
                for _ in range(CALLS):
                    make()
                ended = time.perf_counter()
            if turn >= 0:
                found[n].append((ended - started) / CALLS * 1e6)
    return found


def gpu_microseconds(call: Callable[[], Any]) -> float:
    """What the GPU takes for one call: calls that wait in its queue behind a long sleep, by events."""
    import torch

    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    torch.cuda.synchronize()
    torch.cuda._sleep(40_000_000)  # clocks: the host is ahead by then
    begin.record()
    for _ in range(CALLS):
        call()
    end.record()
    torch.cuda.synchronize()
    return float(begin.elapsed_time(end)) / CALLS * 1e3


def main(out: str) -> int:
    """Time every call, and append what came of it: earlier rows stay."""
    if out == "build":
        return int(bool(compile_together(sources()).refused))
    import torch

    where = {
        "device": torch.cuda.get_device_name(),
        "torch": torch.__version__,
        "measured_utc": datetime.now(UTC).isoformat(timespec="seconds"),
        "commit": stamp.commit().sha,
        "dirty": stamp.commit().dirty,
    }
    rows: list[dict[str, Any]] = []
    for what, choose_nth in choices():
        rows.append({"call": what} | fresh_microseconds(choose_nth))
    every = list(calls())
    for call, found in zip(every, microseconds(every), strict=True):
        gpu = round(gpu_microseconds(call.make), 2)
        rows.append({"call": call.what, "served_by": call.served_by} | _spread(found) | {"gpu_us": gpu})
    sys.stdout.write("".join(f"{row}\n" for row in rows))
    file = Path(out)
    before = json.loads(file.read_text(encoding="utf-8")) if file.exists() else []
    file.write_text(json.dumps([*before, *(row | where for row in rows)], indent=1) + "\n", encoding="utf-8")
    return 0


def _spread(found: Sequence[float]) -> dict[str, float]:
    named = {"host_us": statistics.median(found), "host_us_least": min(found), "host_us_most": max(found)}
    return {name: round(value, 2) for name, value in named.items()}


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
