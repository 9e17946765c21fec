"""Call torch's CPU flash attention in the form that also returns lse."""

import torch

from attention.call import NO_EXTRAS, Extras
from attention.layout import empty_out
from attention.problem import AttentionProblem
from attention.torch_limits import band_in_mask
from attention.torch_masks import additive
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
    mask = additive(problem, extras.mask, query)
    call = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu
    causal = problem.causal and not band_in_mask(problem)
    out, lse = call(q, k, v, 0.0, causal, attn_mask=mask, scale=problem.softmax_scale)
    if mask is not None:
        lse = lse.masked_fill((mask == -torch.inf).all(-1), -torch.inf)
    if extras.sinks is not None:
        sinks = extras.sinks[:, None]
        out.mul_((lse - sinks).sigmoid_()[..., None])
        lse = torch.logaddexp(lse, sinks)
    laid_out = empty_out(query, v.shape[-1])
    return (out if out.stride() == laid_out.stride() else laid_out.copy_(out)), lse.contiguous()
