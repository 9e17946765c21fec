"""The GPU's half: launches with CuPy, tensor maps from the driver."""

import ctypes
from typing import Any

import numpy as np

from microbench.compile import Cubin, Source, require_all
from microbench.device.cuda import CudaDevice
from microbench.device.cuda_kernel import CudaKernel
from microbench.errors import DeviceError
from microbench.verify.differential.case import Array, Buffer, Launch, Map


class Gpu:
    """The GPU of this number. Raises EnvironmentLacks, DeviceError."""

    def __init__(self, index: int) -> None:
        self.device = CudaDevice(index)

    def kernel(self, source: Source) -> tuple[CudaKernel, Cubin]:
        """Its kernel, ready to launch. Raises BuildError, DeviceError."""
        (cubin,) = require_all((source,))
        return self.device.load(cubin), cubin

    def results(self, kernel: CudaKernel, launches: list[Launch], doing: str) -> Array:
        """All outputs of all launches, flat and one after another. Raises DeviceError."""
        with self.device.guard(doing):
            return np.concatenate([found for launch in launches for found in self._run(kernel, launch)])

    def _run(self, kernel: CudaKernel, launch: Launch) -> list[Array]:
        arrays = [self.device.cupy.asarray(each) for each in launch.arrays]

        def one(arg: Buffer | Map | int | float) -> Any:
            if isinstance(arg, Buffer):
                return arrays[arg.index]
            if isinstance(arg, Map):
                return parameter(tensor_map(arrays[arg.index], arg))
            return np.int32(arg) if isinstance(arg, int) else np.float32(arg)

        kernel(launch.grid, launch.block, tuple(map(one, launch.args)), shared_mem=launch.smem_bytes)
        return [arrays[i].get().ravel() for i in launch.outputs]


def parameter(opaque: bytes) -> Array:
    """A struct as a kernel's parameter.

    An array of one item: CuPy hands on its memory, while a scalar of 128 bytes is too large for CuPy 14.0.
    """
    return np.frombuffer(opaque, np.dtype((np.void, len(opaque))))


def tensor_map(array: Any, given: Map) -> bytes:
    """The driver's tensor map of a row-major CuPy array. Raises DeviceError where the driver refuses it."""
    from cuda.bindings import driver

    kinds, spans = driver.CUtensorMapDataType, driver.CUtensorMapSwizzle
    kind = {
        "u8": kinds.CU_TENSOR_MAP_DATA_TYPE_UINT8,
        "u16": kinds.CU_TENSOR_MAP_DATA_TYPE_UINT16,
        "u32": kinds.CU_TENSOR_MAP_DATA_TYPE_UINT32,
        "f16": kinds.CU_TENSOR_MAP_DATA_TYPE_FLOAT16,
        "bf16": kinds.CU_TENSOR_MAP_DATA_TYPE_BFLOAT16,
        "f32": kinds.CU_TENSOR_MAP_DATA_TYPE_FLOAT32,
    }[given.element]
    span = {
        0: spans.CU_TENSOR_MAP_SWIZZLE_NONE,
        32: spans.CU_TENSOR_MAP_SWIZZLE_32B,
        64: spans.CU_TENSOR_MAP_SWIZZLE_64B,
        128: spans.CU_TENSOR_MAP_SWIZZLE_128B,
    }[given.swizzle]
    sides = array.shape[::-1]
    # One stride also where one dimension needs none: an empty list would become a null pointer.
    strides = [int(np.prod(sides[:i], dtype=np.int64)) * array.itemsize for i in range(1, max(2, len(sides)))]
    status, made = driver.cuTensorMapEncodeTiled(
        kind,
        len(sides),
        int(array.data.ptr),
        [driver.cuuint64_t(side) for side in sides],
        [driver.cuuint64_t(stride) for stride in strides],
        [driver.cuuint32_t(side) for side in given.box[::-1]],
        [driver.cuuint32_t(1) for _ in sides],
        driver.CUtensorMapInterleave.CU_TENSOR_MAP_INTERLEAVE_NONE,
        span,
        driver.CUtensorMapL2promotion.CU_TENSOR_MAP_L2_PROMOTION_NONE,
        driver.CUtensorMapFloatOOBfill.CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE,
    )
    if status != driver.CUresult.CUDA_SUCCESS:
        raise DeviceError(f"The driver refuses a tensor map of {array.shape} with a box of {given.box}: {status}.")
    return ctypes.string_at(int(made.getPtr()), 128)
