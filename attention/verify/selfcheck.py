"""Is every kernel of ours that serves this machine right? Held against the float64 oracle; needs torch, and no tests.

    python -m attention.verify.selfcheck [cuda | cpu]

What `smscope test-gpu` runs where there is no checkout: a few problems of each kind, not the thousands of the tests.
"""

import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from attention.choose import learned
from attention.choose.choose import Candidate
from attention.choose.machine import machine_profile
from attention.errors import EnvironmentLacks, UnsupportedError
from attention.oracle import reference
from attention.oracle.trials import inputs
from attention.problem import AttentionProblem
from attention.variant import by_path

PUBLIC = "attention.sdpa"
# Lengths that fill no tile, shared key heads, one query on a long cache, and the last rows of a longer prompt.
SHAPES = (
    AttentionProblem(2, 4, 4, 333, 333, 64),
    AttentionProblem(2, 4, 4, 333, 333, 64, causal=True),
    AttentionProblem(1, 8, 2, 257, 641, 128),
    AttentionProblem(1, 8, 2, 641, 641, 128, causal=True),
    AttentionProblem(1, 8, 2, 129, 641, 128, causal=True, alignment="bottom_right"),
    AttentionProblem(1, 16, 4, 1, 4096, 128),
    AttentionProblem(1, 2, 2, 200, 200, 256, causal=True),
)
DTYPES = {"cuda": ("float16", "bfloat16"), "cpu": ("float32", "bfloat16")}


@dataclass(frozen=True)
class Checked:
    problem: str
    kernel: str
    comparison: reference.Comparison | None
    failure: str | None = None

    @property
    def ok(self) -> bool:
        """Whether the result is as near to the oracle as the rule of attention.oracle.reference asks."""
        return self.comparison is not None and self.comparison.ok


def problems(device: str) -> tuple[AttentionProblem, ...]:
    return tuple(replace(shape, dtype=dtype, device=device) for dtype in DTYPES[device] for shape in SHAPES)


def check(
    device: str, asked: tuple[AttentionProblem, ...] | None = None, tell: Callable[[str], None] = lambda _: None
) -> list[Checked]:
    """Every kernel of ours that serves a problem on `device` ('cuda' or 'cpu'), and the public function.

    `tell` hears of each problem before it is computed. Raises EnvironmentLacks where torch or the device is missing.
    """
    try:
        import torch
    except ImportError as error:
        raise EnvironmentLacks("A check of the attention kernels needs torch; `pip install torch` first.") from error
    if device == "cuda" and not torch.cuda.is_available():
        raise EnvironmentLacks("torch sees no NVIDIA GPU here, so no kernel can be checked on one.")
    found: list[Checked] = []
    with torch.no_grad():
        for problem in problems(device) if asked is None else asked:
            tell(str(problem))
            found += _of_problem(problem, device)
    return found


def _of_problem(problem: AttentionProblem, device: str) -> Iterator[Checked]:
    query, key, value = (tensor.to(device) for tensor in inputs(problem))
    oracle, low = _oracle(problem, query, key, value)
    for name, call in _calls(problem, device):
        try:
            out = call(query, key, value)
        except Exception as error:  # a kernel that does not build or launch is a finding, and the next one's turn
            yield Checked(str(problem), name, None, f"{type(error).__name__}: {error}".splitlines()[0])
            continue
        yield Checked(str(problem), name, reference.compare(_array(out), oracle, low, problem.dtype))


def _calls(problem: AttentionProblem, device: str) -> Iterator[tuple[str, Callable[..., Any]]]:
    """The public function where its alignment is the problem's, and the best configuration of each kernel of ours."""
    if problem.alignment == "top_left":
        yield PUBLIC, lambda q, k, v: _public(q, k, v, problem)
    profile = machine_profile(device).profile
    try:
        choice = learned.choice_on(profile, problem, only="smscope")
    except UnsupportedError:
        return
    best: dict[str, Candidate] = {}
    for candidate in choice.candidates:
        best.setdefault(candidate.variant, candidate)
    for path, candidate in best.items():
        run = by_path(path).load()
        yield (
            f"{path} {candidate.config}",
            lambda q, k, v, run=run, config=candidate.config: run(q, k, v, problem, config)[0],
        )


def _public(query: Any, key: Any, value: Any, problem: AttentionProblem) -> Any:
    from attention.frontends.sdpa import sdpa

    gqa = problem.heads_q != problem.heads_kv
    return sdpa(query, key, value, is_causal=problem.causal, enable_gqa=gqa)


def _oracle(problem: AttentionProblem, query: Any, key: Any, value: Any) -> tuple[Any, Any]:
    """The float64 result, and torch's own in the problem's dtype."""
    import torch

    features: dict[str, Any] = {"causal": problem.causal, "alignment": problem.alignment}
    out, _ = reference.attention(*map(_array, (query, key, value)), scale=problem.softmax_scale, **features)
    offset = problem.seq_kv - problem.seq_q if problem.alignment == "bottom_right" else 0
    seen = np.tri(problem.seq_q, problem.seq_kv, offset, dtype=bool) if problem.causal else None
    mask = None if seen is None else torch.from_numpy(seen).to(query.device)
    group = problem.heads_q // problem.heads_kv
    k, v = (tensor.repeat_interleave(group, dim=1) for tensor in (key, value))
    low = torch.nn.functional.scaled_dot_product_attention(query, k, v, mask, scale=problem.softmax_scale)
    return out, _array(low)


def _array(tensor: Any) -> Any:
    return tensor.double().cpu().numpy()


if __name__ == "__main__":
    rows = check(sys.argv[1] if len(sys.argv) > 1 else "cuda")
    for row in rows:
        print("ok   " if row.ok else "WRONG", row.problem, row.kernel, row.failure or row.comparison)
    sys.exit(not all(row.ok for row in rows))
