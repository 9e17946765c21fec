"""What torch's fused backward kernels give, as a compiled graph was promised it, with the gradient of sinks beside it.

They recompute the weights as exp(scale Q K^T - lse), so that they take any forward's out and lse, sinks included: only
the sum over keys changes with a sink, and lse holds it.
"""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING

from attention.forwarded import Forwarded, Gradients, Wanted

if TYPE_CHECKING:
    from torch import Tensor


def gradients(found: tuple[Tensor, Tensor, Tensor], grad_out: Tensor, given: Forwarded, wanted: Wanted) -> Gradients:
    inputs = (given.query, given.key, given.value)
    query, key, value = (_laid_out(each, like) for each, like in zip(found, inputs, strict=True))
    return Gradients(query, key, value, None, None, _of_sinks(grad_out, given) if wanted.sinks else None)


def lse_of_unseen(lse: Tensor) -> Tensor:
    """Of a row that saw nothing +inf: its weights are exp(-inf - lse), which is 0 for +inf and NaN for -inf."""
    return lse.masked_fill(lse == -inf, inf)


def _laid_out(found: Tensor, like: Tensor) -> Tensor:
    """A gradient in the layout that a compiled graph was promised; copied only where the kernel chose another one."""
    import torch

    wanted = torch.empty_like(like)
    return found if found.stride() == wanted.stride() else wanted.copy_(found)


def _of_sinks(grad_out: Tensor, given: Forwarded) -> Tensor:
    """-sum(exp(sink - lse) * rowsum(dO * out)): a sink takes weight from its row, and gives no value."""
    import torch

    assert given.extras.sinks is not None
    wide = given.lse.dtype
    delta = (grad_out.to(wide) * given.out.to(wide)).sum(-1)
    shares = (given.extras.sinks[:, None] - given.lse).exp() * delta
    blind = given.lse == -inf
    starts = given.extras.cu_seqlens_q
    if starts is not None:  # a row of no sequence has whatever its memory held
        row = torch.arange(given.lse.shape[2], device=given.lse.device)
        blind = blind | (row < starts[0]) | (row >= starts[-1])
    return -shares.masked_fill(blind, 0.0).sum((0, 2))
