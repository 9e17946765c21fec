"""Call torch's CPU flash attention in the form that also returns lse."""

import torch

from attention.extras import NO_EXTRAS, Extras
from attention.layout import empty_out
from attention.problem import AttentionProblem
from attention.variant import Config


def forward(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    problem: AttentionProblem,
    config: Config,
    extras: Extras = NO_EXTRAS,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Out (B, Hq, Sq, Dv) and lse (B, Hq, Sq), as attention.layout has them.

    Torch's function checks its strides in a caller that is passed by here: it reads a last dimension that is not
    contiguous as if it were (torch 2.13), so that such a tensor is copied first. It gives a query that its mask hides
    from every key an lse of 0 (torch 2.13), which becomes -inf.
    """
    q, k, v = (tensor if tensor.stride(-1) == 1 else tensor.contiguous() for tensor in (query, key, value))
    mask = None if extras.mask is None else _added(extras.mask, query.dtype)
    call = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu
    out, lse = call(q, k, v, 0.0, problem.causal, attn_mask=mask, scale=problem.softmax_scale)
    laid_out = empty_out(query, v.shape[-1])
    if mask is not None:
        lse = lse.masked_fill((mask == -torch.inf).all(-1), -torch.inf)
    return (out if out.stride() == laid_out.stride() else laid_out.copy_(out)), lse.contiguous()


def _added(mask: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    if mask.dtype != torch.bool:
        return mask.to(dtype)
    return torch.zeros(mask.shape, dtype=dtype, device=mask.device).masked_fill_(~mask, -torch.inf)
