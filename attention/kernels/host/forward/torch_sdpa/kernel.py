"""Call torch's CPU flash attention in the form that also returns lse."""

import torch

from attention.layout import empty_out
from attention.problem import AttentionProblem
from attention.variant import Config


def forward(
    query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, problem: AttentionProblem, config: Config
) -> tuple[torch.Tensor, torch.Tensor]:
    """Out (B, Hq, Sq, Dv) and lse (B, Hq, Sq), as attention.layout has them.

    Torch's function checks its strides in a caller that is passed by here: it reads a last dimension that is not
    contiguous as if it were (torch 2.13), so that such a tensor is copied first.
    """
    q, k, v = (tensor if tensor.stride(-1) == 1 else tensor.contiguous() for tensor in (query, key, value))
    call = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu
    out, lse = call(q, k, v, 0.0, problem.causal, scale=problem.softmax_scale)
    laid_out = empty_out(query, v.shape[-1])
    return (out if out.stride() == laid_out.stride() else laid_out.copy_(out)), lse.contiguous()
