"""The GPU's half: launches with CuPy, tensor maps from the driver."""

from typing import Any

import numpy as np

from microbench.compile import Cubin, Source, require_all
from microbench.device.cuda import CudaDevice
from microbench.device.cuda_kernel import CudaKernel
from microbench.device.tensor_map import encode, parameter
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


def tensor_map(array: Any, given: Map) -> bytes:
    """The driver's tensor map of a row-major CuPy array. Raises DeviceError where the driver refuses it."""
    return encode(array, given.box, given.element, given.swizzle)
