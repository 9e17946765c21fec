"""Tensors that torch's kernels for a GPU can read, and copies of others.

They read 16 bytes at once, and torch does not ask where those begin (torch 2.11, measured on an H200).
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from attention.kernels.common.layout import READ_BYTES, padded_rows

if TYPE_CHECKING:
    from torch import Tensor

Strides = tuple[int, ...]


def padded(tensor: Tensor) -> Tensor:
    """Readable, and a last dimension of whole 16 bytes."""
    whole = tensor.shape[-1] % (READ_BYTES // tensor.element_size()) == 0
    return readable(tensor) if whole else padded_rows(tensor)


def readable(tensor: Tensor) -> Tensor:
    """The tensor where it lies, or a dense copy.

    Of rows that begin elsewhere cuDNN gives wrong numbers without a word, flash ends the process's context, and
    memory-efficient attention finds no kernel, even where the dimension of an odd stride has one element.
    """
    import torch

    if tensor.data_ptr() % READ_BYTES == 0 and _fit(tensor.itemsize, tensor.size(-1), tensor.stride()):
        return tensor
    return tensor.clone(memory_format=torch.contiguous_format)


def all_readable(query: Tensor, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """The three, each where it lies if it can be read there. Asked once, since every call on a GPU pays for it."""
    begin = query.data_ptr() | key.data_ptr() | value.data_ptr()
    size, width, width_v = query.itemsize, query.size(-1), value.size(-1)
    if begin % READ_BYTES == 0 and _all_fit(size, width, width_v, query.stride(), key.stride(), value.stride()):
        return query, key, value
    return readable(query), readable(key), readable(value)


def readable_mask(mask: Tensor) -> Tensor:
    """(..., Sq, Skv): a float mask that begins elsewhere is copied, its stretched dimensions once."""
    if mask.data_ptr() % READ_BYTES == 0 or not mask.is_floating_point():
        return mask  # torch makes floats of a bool mask, and copies rows whose stride is odd
    once = mask[tuple(slice(0, 1) if stride == 0 else slice(None) for stride in mask.stride())]
    return once.clone().expand(mask.shape)


@lru_cache(maxsize=4096)
def _all_fit(size: int, width: int, width_v: int, query: Strides, key: Strides, value: Strides) -> bool:
    return _fit(size, width, query) and _fit(size, width, key) and _fit(size, width_v, value)


@lru_cache(maxsize=4096)
def _fit(size: int, width: int, strides: Strides) -> bool:
    """Rows begin at multiples of 16 bytes; those of a width that torch pads itself lie densely."""
    read = READ_BYTES // size
    unit = width if width % read else read
    return strides[-1] == 1 and not any(stride % unit for stride in strides[:-1])
