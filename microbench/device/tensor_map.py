"""Tensor maps of a GPU, which its driver encodes; the emulator's are in emulator/tensor_map.py."""

import ctypes
from typing import Any

import numpy as np
from numpy.typing import NDArray

from microbench.emulator.tensor_map import Element, Swizzle
from microbench.errors import DeviceError, EnvironmentLacks


def parameter(opaque: bytes) -> NDArray[Any]:
    """A struct as a kernel's parameter.

    An array of one item: CuPy hands on its memory, while a scalar of 128 bytes is too large for CuPy 14.0.
    """
    return np.frombuffer(opaque, np.dtype((np.void, len(opaque))))


def encode(array: Any, box: tuple[int, ...], element: Element, swizzle: Swizzle, promotion_bytes: int = 0) -> bytes:
    """The driver's tensor map of a row-major CuPy array; dimensions are outermost first.

    Args:
        array: contiguous.
        box: elements that one copy moves, by dimension.
        element: what an element is; NumPy has no bf16.
        swizzle: span in bytes; 0 is none.
        promotion_bytes: what a miss of the L2 brings in at least, 64, 128 or 256; 0 is no more than was asked for.

    Raises DeviceError where the driver refuses it, EnvironmentLacks without cuda-bindings.
    """
    try:
        from cuda.bindings import driver
    except ImportError as error:
        raise EnvironmentLacks(
            "A tensor map is encoded through cuda-bindings, which is not installed here; pip install cuda-bindings."
        ) from error
    kinds, spans, promotions = driver.CUtensorMapDataType, driver.CUtensorMapSwizzle, driver.CUtensorMapL2promotion
    kind = {
        "u8": kinds.CU_TENSOR_MAP_DATA_TYPE_UINT8,
        "u16": kinds.CU_TENSOR_MAP_DATA_TYPE_UINT16,
        "u32": kinds.CU_TENSOR_MAP_DATA_TYPE_UINT32,
        "f16": kinds.CU_TENSOR_MAP_DATA_TYPE_FLOAT16,
        "bf16": kinds.CU_TENSOR_MAP_DATA_TYPE_BFLOAT16,
        "f32": kinds.CU_TENSOR_MAP_DATA_TYPE_FLOAT32,
    }[element]
    span = getattr(spans, "CU_TENSOR_MAP_SWIZZLE_" + (f"{swizzle}B" if swizzle else "NONE"))
    promotion = getattr(
        promotions, "CU_TENSOR_MAP_L2_PROMOTION_" + (f"L2_{promotion_bytes}B" if promotion_bytes else "NONE")
    )
    sides = array.shape[::-1]
    # One stride also where one dimension needs none: an empty list would become a null pointer.
    strides = [int(np.prod(sides[:i], dtype=np.int64)) * array.itemsize for i in range(1, max(2, len(sides)))]
    status, made = driver.cuTensorMapEncodeTiled(
        kind,
        len(sides),
        int(array.data.ptr),
        [driver.cuuint64_t(side) for side in sides],
        [driver.cuuint64_t(stride) for stride in strides],
        [driver.cuuint32_t(side) for side in box[::-1]],
        [driver.cuuint32_t(1) for _ in sides],
        driver.CUtensorMapInterleave.CU_TENSOR_MAP_INTERLEAVE_NONE,
        span,
        promotion,
        driver.CUtensorMapFloatOOBfill.CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE,
    )
    if status != driver.CUresult.CUDA_SUCCESS:
        raise DeviceError(f"The driver refuses a tensor map of {array.shape} with a box of {box}: {status}.")
    return ctypes.string_at(int(made.getPtr()), 128)
