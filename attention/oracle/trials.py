"""What a bench calls of each pass, on random inputs, and how it judges a result by the float64 oracle."""

from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

import numpy as np

from attention.call import NO_EXTRAS
from attention.forwarded import Forwarded, Wanted
from attention.oracle import exact_gradients, reference, rounding
from attention.oracle.reference import Comparison
from attention.problem import AttentionProblem
from attention.timed.timing import Pass
from attention.variant import Config

MOST_BOUNDED = 1 << 22  # scores, of which a bound keeps a dozen arrays
ORACLE_ROWS = 256  # queries that the oracle checks, the last ones: under causal they see the most keys


@dataclass(frozen=True)
class Trial:
    """`call` runs a variant's function with a configuration, and `judged` compares what it gave."""

    call: Callable[[Callable[..., Any], Config], Any]
    judged: Callable[[Any], Comparison]


def of_pass(passes: Pass, problem: AttentionProblem) -> Trial:
    return _backward(problem) if passes == "backward" else _forward(problem)


def _forward(problem: AttentionProblem) -> Trial:
    query, key, value = inputs(problem)
    oracle, low, bound = oracle_of(problem, query, key, value)
    return Trial(
        lambda run, config: run(query, key, value, problem, config),
        lambda found: reference.compare(checked_part(found[0]), oracle, low, problem.dtype, bound),
    )


def _backward(problem: AttentionProblem) -> Trial:
    """The gradients of random ones of out, from the slow path's out and lse; the worst of three is judged."""
    import torch

    from attention.kernels.torch.composed import slow
    from attention.torch_private import torch_sdpa

    tensors = inputs(problem)
    out, lse = slow.forward(*tensors, problem, Config())
    d_out = torch.randn(out.shape, generator=torch.Generator().manual_seed(1)).to(out.dtype)
    given = Forwarded(*tensors, out, lse, problem, NO_EXTRAS)
    oracle = exact_gradients.gradients(problem, *tensors, d_out)
    leaves = tuple(each.detach().requires_grad_() for each in tensors)
    gqa = problem.heads_q != problem.heads_kv
    with torch.enable_grad(), torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH):
        theirs = torch_sdpa(*leaves, is_causal=problem.causal, scale=problem.softmax_scale, enable_gqa=gqa)
        low = exact_gradients.checked(problem, torch.autograd.grad(theirs, leaves, d_out))

    bounds = _gradient_bounds(problem, *tensors, d_out)

    def judged(found: Any) -> Comparison:
        parts = exact_gradients.checked(problem, (found.query, found.key, found.value))
        compared = (
            reference.compare(part, exact, other, problem.dtype, bound)
            for part, exact, other, bound in zip(parts, oracle, low, bounds, strict=True)
        )
        return max(compared, key=lambda each: (not each.ok, each.error / each.allowed))

    return Trial(lambda run, config: run(d_out, None, given, Wanted()), judged)


def _gradient_bounds(problem: AttentionProblem, *tensors: Any) -> list[float]:
    """What rounding may do to each gradient of the checked heads: of few numbers none is like another's worst."""
    group = problem.heads_q // problem.heads_kv
    if problem.dtype not in rounding.UNIT or group * problem.seq_q * problem.seq_kv > MOST_BOUNDED:
        return [0.0] * 3
    first = ((each[0, :group] if each.shape[1] == problem.heads_q else each[0, :1]) for each in tensors)
    query, key, value, d_out = (
        rounding.Rounded.exact(np.repeat(each.double().numpy(), group // len(each), 0), problem.dtype) for each in first
    )
    seen = np.tri(problem.seq_q, problem.seq_kv, dtype=bool) if problem.causal else None
    _, of_query, *others = rounding.gradients(query, key, value, d_out, scale=problem.softmax_scale, seen=seen)
    return [float(each.error.max()) for each in (of_query, *(other.sum(0) for other in others))]


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


def checked_part(out: Any, rows: int = ORACLE_ROWS) -> Any:
    """The last queries of the first and last head of the first batch, as float64."""
    heads = [0, out.shape[1] - 1]
    return out[0, heads, -rows:].double().cpu().numpy()


def oracle_of(
    problem: AttentionProblem, query: Any, key: Any, value: Any, rows: int = ORACLE_ROWS
) -> tuple[Any, Any, float]:
    """The oracle's and torch's own result of the checked part, and what rounding may do to it in this precision."""
    import torch

    from attention.torch_private import torch_sdpa

    group = problem.heads_q // problem.heads_kv
    heads_q = [0, problem.heads_q - 1]
    q = query[:1, heads_q, -rows:]
    k, v = (tensor[:1, [head // group for head in heads_q]] for tensor in (key, value))
    seen = _seen(problem, q.shape[2])
    arrays = [tensor.double().cpu().numpy() for tensor in (q, k, v)]
    out, _ = reference.attention(*arrays, scale=problem.softmax_scale, mask=seen)
    mask = None if seen is None else torch.from_numpy(seen).to(q.device)
    with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH) if q.is_cuda else nullcontext():
        low = torch_sdpa(q, k, v, mask, scale=problem.softmax_scale)
    bound = 0.0
    if problem.dtype in rounding.UNIT:
        exact = (rounding.Rounded.exact(array, problem.dtype) for array in arrays)
        bound = float(rounding.attention(*exact, scale=problem.softmax_scale, seen=seen)[1].error.max(initial=0.0))
    return out[0], low[0].double().cpu().numpy(), bound


def _seen(problem: AttentionProblem, rows: int) -> Any:
    """Which keys the last queries see; None where that is all."""
    band = problem.band()
    if band.right is None and band.left is None:
        return None
    row, column = np.arange(problem.seq_q)[-rows:, None], np.arange(problem.seq_kv)
    seen = np.ones((rows, problem.seq_kv), bool)
    if band.right is not None:
        seen &= column <= row + band.right
    if band.left is not None:
        seen &= column >= row + band.left
    return seen
