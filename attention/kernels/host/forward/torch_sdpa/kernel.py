"""Call torch's CPU flash attention in the form that also returns lse."""

import torch

from attention.band import Band
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
    from every key an lse of 0 (torch 2.13), which becomes -inf. A band is written into the mask where there is one, or
    where is_causal cannot say it. A sink takes its weight from the row afterwards: of exp(lse) + exp(sink), exp(lse)
    is left.
    """
    q, k, v = (tensor if tensor.stride(-1) == 1 else tensor.contiguous() for tensor in (query, key, value))
    band = problem.band()
    in_mask = not band.open and (extras.mask is not None or band != Band(right=0))
    mask = _added(extras.mask, _seen(band, query, key) if in_mask else None, query.dtype)
    call = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu
    causal = problem.causal and not in_mask
    out, lse = call(q, k, v, 0.0, causal, attn_mask=mask, scale=problem.softmax_scale)
    if mask is not None:
        lse = lse.masked_fill((mask == -torch.inf).all(-1), -torch.inf)
    if extras.sinks is not None:
        sinks = extras.sinks[:, None]
        out.mul_((lse - sinks).sigmoid_()[..., None])
        lse = torch.logaddexp(lse, sinks)
    laid_out = empty_out(query, v.shape[-1])
    return (out if out.stride() == laid_out.stride() else laid_out.copy_(out)), lse.contiguous()


def _seen(band: Band, query: torch.Tensor, key: torch.Tensor) -> torch.Tensor:
    """Bool (Sq, Skv): the keys of the band."""
    beyond = torch.arange(key.shape[2]) - torch.arange(query.shape[2])[:, None]
    seen = torch.ones_like(beyond, dtype=torch.bool)
    if band.left is not None:
        seen &= beyond >= band.left
    if band.right is not None:
        seen &= beyond <= band.right
    return seen


def _added(mask: torch.Tensor | None, seen: torch.Tensor | None, dtype: torch.dtype) -> torch.Tensor | None:
    """The mask as floats, -inf where nothing is seen."""
    if mask is None:
        return None if seen is None else torch.zeros(seen.shape, dtype=dtype).masked_fill_(~seen, -torch.inf)
    if mask.dtype == torch.bool:
        seen = mask if seen is None else mask & seen
        return torch.zeros(seen.shape, dtype=dtype).masked_fill_(~seen, -torch.inf)
    mask = mask.to(dtype)
    return mask if seen is None else mask.masked_fill(~seen, -torch.inf)
