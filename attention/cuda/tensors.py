"""What every launcher does with tensors: inputs a kernel can read, an out it can write, and the tensors of features."""

import ctypes
from typing import Any

import torch

from attention.cuda import tensor_map
from attention.extras import Extras
from attention.layout import empty_out


def readable(tensor: torch.Tensor) -> torch.Tensor:
    """The tensor where it lies, or a copy whose rows are whole multiples of 16 bytes."""
    width = tensor.shape[-1]
    if width % 8:  # torch's own padding keeps the order of strides, in which rows may not be contiguous
        padded = tensor.new_zeros((*tensor.shape[:-1], -(-width // 8) * 8))
        padded[..., :width] = tensor
        return padded
    return tensor if tensor_map.fits(tensor) else tensor.clone(memory_format=torch.contiguous_format)


def outputs(query: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """(out as the caller gets it, what the kernel writes): the same tensor, or one with padded rows to copy from."""
    width = query.shape[-1]
    out = empty_out(query, width)
    if width % 8 == 0 and out.stride(-1) == 1 and all(stride % 8 == 0 for stride in out.stride()[:-1]):
        return out, out
    return out, out.new_empty((*out.shape[:-1], -(-width // 8) * 8))


def bring(launch: Any, extras: Extras) -> None:
    """Addresses and strides of the tensors that features bring, into fields that every `Launch` has by these names."""
    assert isinstance(launch, ctypes.Structure)
    fields: Any = launch
    if extras.cu_seqlens_q is not None and extras.cu_seqlens_k is not None:
        fields.query_starts, fields.key_starts = extras.cu_seqlens_q.data_ptr(), extras.cu_seqlens_k.data_ptr()
    if extras.alibi is not None:
        fields.alibi = extras.alibi.data_ptr()
        fields.alibi_batch, fields.alibi_head = extras.alibi.stride()
    if extras.sinks is not None:
        fields.sinks = extras.sinks.data_ptr()
    if extras.mask is not None:
        fields.mask = extras.mask.data_ptr()
        fields.mask_batch, fields.mask_head, fields.mask_row, fields.mask_key = extras.mask.stride()
