"""Tensors of features in the dtypes that the operator takes, of which flash-attn's callers have others as well."""

import torch

from attention.call import NO_EXTRAS, Extras
from attention.features import OPERANDS
from attention.kernels.common.layout import lse_dtype
from attention.problem import LARGEST

_CASTS = tuple((operand.name, operand.holds) for operand in OPERANDS if operand.holds != "mask")


def operators(query: torch.Tensor, extras: Extras) -> Extras:
    """What features bring for this query: counts in 32 bits, slopes and sinks in the dtype of lse."""
    if extras is NO_EXTRAS:
        return extras
    dtype = lse_dtype(query)
    for name, holds in _CASTS:
        tensor, wanted = getattr(extras, name), torch.int32 if holds == "count" else dtype
        if tensor is not None and tensor.dtype is not wanted:
            extras = extras._replace(**{name: tensor.to(wanted)})
    return extras


def in_32_bits(starts_q: torch.Tensor, starts_k: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Starts as kernels read them; other dtypes are left for the operator to refuse."""
    cast_q, cast_k = (
        each.clamp(-1, LARGEST).to(torch.int32) if each.dtype is torch.int64 else each for each in (starts_q, starts_k)
    )
    return cast_q, cast_q if starts_k is starts_q else cast_k


def every(query: torch.Tensor, extras: Extras) -> Extras:
    """All of them, starts as well."""
    if extras.cu_seqlens_q is not None:
        starts = in_32_bits(extras.cu_seqlens_q, extras.cu_seqlens_k)
        extras = extras._replace(cu_seqlens_q=starts[0], cu_seqlens_k=starts[1])
    return operators(query, extras)
