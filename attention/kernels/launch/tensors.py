"""What every launcher does with tensors: inputs a kernel can read, an out it can write, and the tensors of features."""

from functools import lru_cache
from typing import Any

import torch

from attention.call import Extras
from attention.features import OPERANDS
from attention.kernels.common.layout import empty_out, padded_rows
from attention.kernels.launch import tensor_map

Sizes = tuple[int, ...]
# Where the address of each tensor of features stands, a field of Launch by the field of Extras.
ADDRESSES = {operand.name: operand.name for operand in OPERANDS}
ADDRESSES |= {"cu_seqlens_q": "query_starts", "cu_seqlens_k": "key_starts"}


def readable(tensor: torch.Tensor) -> torch.Tensor:
    """The tensor where it lies, or a copy whose rows are whole multiples of 16 bytes."""
    if tensor.shape[-1] % 8:
        return padded_rows(tensor)
    return tensor if tensor_map.fits(tensor) else tensor.clone(memory_format=torch.contiguous_format)


@lru_cache(maxsize=4096)
def in_place(query: Sizes, of_query: Sizes, key: Sizes, of_key: Sizes, value: Sizes, of_value: Sizes) -> bool:
    """Whether tensors of these shapes and strides, of 16 bits, are read where they lie if that begins well."""
    return all(
        shape[-1] % 8 == 0 and tensor_map.strides_fit(shape, strides, 2)
        for shape, strides in ((query, of_query), (key, of_key), (value, of_value))
    )


def outputs(query: torch.Tensor, width: int) -> tuple[torch.Tensor, torch.Tensor]:
    """(out as the caller gets it, what the kernel writes): the same tensor, or one with padded rows to copy from."""
    out = empty_out(query, width)
    if width % 8 == 0 and out.stride(-1) == 1 and all(stride % 8 == 0 for stride in out.stride()[:-1]):
        return out, out
    return out, out.new_empty((*out.shape[:-1], -(-width // 8) * 8))


def place(launch: Any, extras: Extras) -> None:
    """Write the addresses and strides of the tensors of features."""
    for name, address in ADDRESSES.items():
        tensor = getattr(extras, name)
        if tensor is not None:
            setattr(launch, address, tensor.data_ptr())
    for operand, tensor in zip(OPERANDS, extras, strict=False):
        if tensor is None:
            continue
        for name, axis in zip(operand.stride_names, operand.strides, strict=True):
            setattr(launch, name, tensor.stride(operand.axes.index(axis)))
