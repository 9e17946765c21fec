"""Tensor maps for TMA: of (batch, heads, sequence, head dim), of heads in groups, or of a mask; any legal strides."""

import ctypes
from functools import lru_cache
from itertools import accumulate
from operator import mul

import torch

from attention.kernels.launch.driver import bindings, check
from attention.tile import FETCH_BYTES

ELEMENTS = {torch.bool: "UINT8", torch.float16: "FLOAT16", torch.bfloat16: "BFLOAT16", torch.float32: "FLOAT32"}
ALIGNMENT_BYTES = 16  # of the base address and of every stride (CUDA driver API, cuTensorMapEncodeTiled)


def fits(tensor: torch.Tensor) -> bool:
    """Whether TMA reads this tensor where it lies: last dimension contiguous, base and strides multiples of 16 bytes.

    An expanded dimension (stride 0) does not: a stride of the map is positive.
    """
    aligned = tensor.data_ptr() % ALIGNMENT_BYTES == 0
    return aligned and strides_fit(tensor.shape, tensor.stride(), tensor.element_size())


@lru_cache(maxsize=4096)
def strides_fit(shape: tuple[int, ...], strides: tuple[int, ...], size: int) -> bool:
    outer = zip(shape[:-1], strides[:-1], strict=True)
    return strides[-1] == 1 and all(
        count == 1 or (stride > 0 and stride * size % ALIGNMENT_BYTES == 0) for count, stride in outer
    )


@lru_cache(maxsize=4096)
def encode(
    address: int,
    shape: tuple[int, ...],
    strides: tuple[int, ...],
    dtype: torch.dtype,
    box: tuple[int, ...],
    swizzle: int,
) -> bytes:
    """The 128 bytes of a tensor map; cached by everything that they follow from.

    Args:
        address: of the first element.
        shape: of four or five dimensions, as (batch, heads, sequence, head dim).
        strides: in elements, of the same dimensions. 0 of rows: one is read for all, as an H200 does by such a map.
        dtype: of an element.
        box: (..., rows, columns) that one copy moves: the last sides of it, which is 1 along all before.
        swizzle: span in bytes, 32, 64 or 128; 0 is none.
    """
    # A miss brings in a line: two of them took an H200 up to 16 % longer where rows begin inside of one, and 10 % where
    # K and V stream from DRAM (data/experiments, "What a miss of TMA brings in").
    driver, size = bindings(), dtype.itemsize
    # A dimension of one element may carry any stride; the map wants a legal one all the same.
    dense, unit = tuple(accumulate(reversed(shape[1:]), mul))[::-1], ALIGNMENT_BYTES // size
    outer = [
        size * (own if count > 1 else -(-d // unit) * unit)
        for own, count, d in zip(strides[:-1], shape[:-1], dense, strict=True)
    ]
    sides = (*box[::-1], *(1,) * (len(shape) - len(box)))
    kind = getattr(driver.CUtensorMapDataType, f"CU_TENSOR_MAP_DATA_TYPE_{ELEMENTS[dtype]}")
    encoded = check(
        driver.cuTensorMapEncodeTiled(
            kind,
            len(shape),
            address,
            [driver.cuuint64_t(count) for count in reversed(shape)],
            [driver.cuuint64_t(stride) for stride in reversed(outer)],
            [driver.cuuint32_t(side) for side in sides],
            [driver.cuuint32_t(1)] * len(shape),
            driver.CUtensorMapInterleave.CU_TENSOR_MAP_INTERLEAVE_NONE,
            getattr(driver.CUtensorMapSwizzle, f"CU_TENSOR_MAP_SWIZZLE_{f'{swizzle}B' if swizzle else 'NONE'}"),
            getattr(driver.CUtensorMapL2promotion, f"CU_TENSOR_MAP_L2_PROMOTION_L2_{FETCH_BYTES}B"),
            driver.CUtensorMapFloatOOBfill.CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE,
        ),
        f"describe a tensor of {shape} with strides {strides}",
    )
    return bytes((ctypes.c_uint64 * 16)(*(int(word) for word in encoded.opaque)))
