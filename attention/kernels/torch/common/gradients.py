"""What torch's fused backward kernels give, laid out as a compiled graph was promised it, and gradients of logits.

They recompute the weights as exp(scale Q K^T - lse), so that they take any forward's out and lse, sinks included: only
the sum over keys changes with a sink, and lse holds it.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import inf
from typing import TYPE_CHECKING

from attention.call import Extras
from attention.features import LOGITS, OPERANDS
from attention.forwarded import Forwarded, Gradients, Wanted

if TYPE_CHECKING:
    from torch import Tensor


def gradients(found: tuple[Tensor, Tensor, Tensor], grad_out: Tensor, given: Forwarded, wanted: Wanted) -> Gradients:
    inputs = (given.query, given.key, given.value)
    query, key, value = (_laid_out(each, like) for each, like in zip(found, inputs, strict=True))
    return Gradients(query, key, value, Extras(*_of_logits(grad_out, given, wanted)))


def lse_of_unseen(lse: Tensor) -> Tensor:
    """Of a row that saw nothing +inf: its weights are exp(-inf - lse), which is 0 for +inf and NaN for -inf."""
    return lse.masked_fill(lse == -inf, inf)


def _laid_out(found: Tensor, like: Tensor) -> Tensor:
    """A gradient in the layout that a compiled graph was promised; copied only where the kernel chose another one."""
    import torch

    wanted = torch.empty_like(like)
    return found if found.stride() == wanted.stride() else wanted.copy_(found)


def _of_logits(grad_out: Tensor, given: Forwarded, wanted: Wanted) -> Iterator[Tensor | None]:
    """Of the logits without a value, such as sinks, which no fused kernel knows; None for other operands."""
    import torch

    from attention.kernels.torch.composed.gradient import logit_gradient
    from attention.kernels.torch.composed.pieces import with_every_axis

    lse, starts = given.lse, given.extras.cu_seqlens_q
    for operand, tensor, want in zip(OPERANDS, given.extras, wanted.operands, strict=False):
        if tensor is None or not want or operand.name not in LOGITS:
            yield None
            continue
        delta = (grad_out.to(lse.dtype) * given.out.to(lse.dtype)).sum(-1)
        shares = logit_gradient(with_every_axis(operand, tensor)[..., 0], lse, delta)
        if starts is not None:  # a row of no sequence has whatever its memory held
            row = torch.arange(lse.shape[2], device=lse.device)
            shares = shares.masked_fill((row < starts[0]) | (row >= starts[-1]), 0.0)
        total = with_every_axis(operand, torch.zeros_like(tensor))
        yield shares[..., None].sum_to_size(total.shape).reshape(tensor.shape)
