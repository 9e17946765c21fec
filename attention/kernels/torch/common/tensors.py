"""What torch's kernels are given and give, where their operators leave checks to torch's sdp_utils, passed by here.

Causality is only of as many queries as keys, where top-left and bottom-right are
the same.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING

from attention.kernels.common.layout import empty_lse, empty_out
from attention.kernels.torch.common.readable import padded
from attention.problem import AttentionProblem

if TYPE_CHECKING:
    import torch
    from torch import Tensor

Pair = tuple["Tensor", "Tensor"]
Call = Callable[["Tensor", "Tensor", "Tensor", bool, float], Pair]


def by_squares(call: Call, query: Tensor, key: Tensor, value: Tensor, problem: AttentionProblem) -> Pair:
    """Top-left causality as a square of the shorter length, and the queries after it, which see all keys."""
    scale = problem.softmax_scale
    q, k, v = map(padded, (query, key, value))
    if not problem.causal or problem.seq_q == problem.seq_kv:  # nothing is cut, which takes the host a third of a call
        found, found_lse = call(q, k, v, problem.causal, scale)
        return laid_out(found if v is value else found[..., : value.shape[-1]], query, value), found_lse
    side = min(problem.seq_q, problem.seq_kv)
    found, found_lse = call(q[:, :, :side], k[:, :, :side], v[:, :, :side], True, scale)
    if side == problem.seq_q:
        return laid_out(found[..., : value.shape[-1]], query, value), found_lse
    out, lse = empty_out(query, value.shape[-1]), empty_lse(query)
    out[:, :, :side], lse[:, :, :side] = found[..., : value.shape[-1]], found_lse
    found, found_lse = call(q[:, :, side:], k, v, False, scale)
    out[:, :, side:], lse[:, :, side:] = found[..., : value.shape[-1]], found_lse
    return out, lse


def laid_out(found: Tensor, query: Tensor, value: Tensor) -> Tensor:
    """The result in common.layout's strides, as a compiled graph was promised; copied only where they differ."""
    out = empty_out(query, value.shape[-1])
    return found if found.stride() == out.stride() else out.copy_(found)


def dense(tensor: Tensor) -> Tensor:
    """With a contiguous last dimension."""
    return tensor if tensor.stride(-1) == 1 else tensor.contiguous()


@cache
def _kept_zero(device: torch.device, dtype: torch.dtype, size: int) -> Tensor:
    import torch

    return torch.zeros(size or (), dtype=dtype, device=device)


def no_dropout(device: torch.device, dtype: torch.dtype, size: int = 0) -> Tensor:
    """The state of a generator that no dropout reads. One of a graph's own pool would not outlive the graph."""
    import torch

    if torch.cuda.is_current_stream_capturing():
        return torch.empty(size or (), dtype=dtype, device=device)
    return _kept_zero(device, dtype, size)
