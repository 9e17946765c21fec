"""Torch's memory-efficient attention (xFormers, CUTLASS): every NVIDIA GPU, float32 as well, masks too."""

from __future__ import annotations

from typing import TYPE_CHECKING

from attention.call import NO_EXTRAS, Extras
from attention.kernels.common.layout import empty_lse, empty_out
from attention.kernels.torch.common import limits
from attention.kernels.torch.common.readable import padded
from attention.kernels.torch.common.tensors import Pair
from attention.problem import AttentionProblem
from attention.variant import Config, Variant
from microbench.machine.arch import CUDA, Arch

if TYPE_CHECKING:
    import torch
    from torch import Tensor

BIAS_MULTIPLE = 16  # elements of a row of an additive mask


def refuses(problem: AttentionProblem, arch: Arch) -> str | None:
    """The limits in torch's sdp_utils."""
    if problem.dtype == "float64":
        return "serves float16, bfloat16 and float32, not float64"
    if problem.dtype == "bfloat16" and "bf16" not in arch.features:
        return f"{arch.name} has no bfloat16; cast query, key and value to float16"
    return limits.needs_positive_scale(problem)


def forward(
    query: Tensor, key: Tensor, value: Tensor, problem: AttentionProblem, config: Config, extras: Extras = NO_EXTRAS
) -> Pair:
    """Out (B, Hq, Sq, Dv) and lse (B, Hq, Sq), as attention.kernels.common.layout has them."""
    import torch

    kernel = torch.ops.aten._scaled_dot_product_efficient_attention
    mask = extras.mask
    q, k, v = (padded(_for_each_head(tensor, query)) for tensor in (query, key, value))
    bias = None if mask is None else _bias(mask, query.dtype)
    found, long_lse, *_ = kernel(q, k, v, bias, True, 0.0, problem.causal, scale=problem.softmax_scale)
    out, lse = empty_out(query, value.shape[-1]), empty_lse(query)
    out.copy_(found[..., : value.shape[-1]])
    lse.copy_(long_lse[..., : query.shape[2]])  # its rows are padded to 32 queries
    if mask is not None:
        blind = ~mask.any(-1) if mask.dtype == torch.bool else (mask == -torch.inf).all(-1)
        out.masked_fill_(blind[..., None], 0.0)
        lse.masked_fill_(blind, -torch.inf)
    return out, lse


def _for_each_head(tensor: Tensor, query: Tensor) -> Tensor:
    """Key heads repeated for the query heads of their group."""
    group = query.shape[1] // tensor.shape[1]
    return tensor if group == 1 else tensor.repeat_interleave(group, dim=1)


def _bias(mask: Tensor, dtype: torch.dtype) -> Tensor:
    import torch

    *leading, keys = mask.shape
    bias = torch.zeros(*leading, keys + -keys % BIAS_MULTIPLE, dtype=dtype, device=mask.device)[..., :keys]
    return bias.masked_fill_(~mask, -torch.inf) if mask.dtype == torch.bool else bias.copy_(mask)


VARIANTS = (
    Variant(
        path="sm70/forward/torch_efficient",
        summary="torch: memory-efficient attention",
        owner="torch",
        archs=CUDA,
        refuses=refuses,
        features=frozenset({"bool mask", "float mask"}),
        rank=3,
        notes=limits.whose_choice,
    ),
)
