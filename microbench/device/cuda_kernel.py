"""CudaKernel: a loaded cubin, with the launch call that emulated kernels take."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from microbench.errors import DeviceError, EnvironmentLacks, InputError

# What a kernel gets without being asked for more (CUDA programming guide, 'Shared Memory').
_STATIC_LIMIT_BYTES = 48 * 1024


class CudaKernel:
    """One kernel of a GPU. `function` is CuPy's: a probe that times the launch itself calls that."""

    def __init__(self, function: Any, stream: Any) -> None:
        self.function = function
        self.stream = stream
        self._smem_bytes = _STATIC_LIMIT_BYTES

    def __call__(
        self,
        grid: tuple[int, ...],
        block: tuple[int, ...],
        args: Sequence[Any],
        shared_mem: int = 0,
        *,
        cluster: tuple[int, ...] = (1,),
    ) -> None:
        """Enqueue one launch on the device's stream.

        Args:
            grid: blocks, in up to three dimensions.
            block: threads, likewise.
            args: CuPy arrays, tensor maps, and scalars, best as NumPy scalars of the parameter's type.
            shared_mem: dynamic shared memory in bytes.
            cluster: blocks of a thread-block cluster, at most eight in all; the grid is a multiple of it.

        Raises DeviceError where the driver refuses a cluster, EnvironmentLacks without cuda-bindings, InputError.
        """
        if shared_mem > self._smem_bytes:
            self.function.max_dynamic_shared_size_bytes = self._smem_bytes = shared_mem
        if max(cluster) == 1:
            self.function(grid, block, tuple(args), shared_mem=shared_mem)
            return
        _launch_clusters(self.function.kernel.ptr, self.stream.ptr, grid, block, cluster, args, shared_mem)


def _launch_clusters(
    function: int,
    stream: int,
    grid: tuple[int, ...],
    block: tuple[int, ...],
    cluster: tuple[int, ...],
    args: Sequence[Any],
    shared_mem: int,
) -> None:
    """CuPy launches no clusters: through the driver's extensible call."""
    try:
        from cuda.bindings import driver
    except ImportError as error:
        raise EnvironmentLacks(
            "A cluster is launched through cuda-bindings, which is not installed here; pip install cuda-bindings."
        ) from error
    dimension = driver.CUlaunchAttribute()
    dimension.id = driver.CUlaunchAttributeID.CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION
    sides = dimension.value.clusterDim
    sides.x, sides.y, sides.z = _three(cluster)
    config = driver.CUlaunchConfig()
    config.gridDimX, config.gridDimY, config.gridDimZ = _three(grid)
    config.blockDimX, config.blockDimY, config.blockDimZ = _three(block)
    config.sharedMemBytes = shared_mem
    config.hStream = driver.CUstream(stream)
    config.attrs, config.numAttrs = [dimension], 1
    # The driver reads as many bytes as each parameter has, wherever its value lies.
    values = [np.frombuffer(_bytes_of(arg), np.uint8) for arg in args]
    pointers = np.array([value.ctypes.data for value in values] or [0], np.uint64)
    (status,) = driver.cuLaunchKernelEx(config, driver.CUfunction(function), pointers.ctypes.data, 0)
    if status != driver.CUresult.CUDA_SUCCESS:
        raise DeviceError(
            f"The driver refuses a launch of {grid} blocks in clusters of {cluster} with {shared_mem} bytes of shared "
            f"memory each: {status.name}; clusters need sm_90, and eight blocks at most."
        )


def _three(size: tuple[int, ...]) -> tuple[int, int, int]:
    if not 1 <= len(size) <= 3 or min(size) < 1:
        raise InputError(f"A launch has one to three positive dimensions, not {size}.")
    x, y, z = (*size, 1, 1)[:3]
    return x, y, z


def _bytes_of(arg: Any) -> bytes:
    """An argument as the kernel's parameter holds it; an int fits a parameter of 32 bits and one of 64."""
    if isinstance(arg, np.generic):
        return arg.tobytes()
    if isinstance(arg, int):
        return np.int64(arg).tobytes()
    if isinstance(arg, float):
        return np.float32(arg).tobytes()
    if hasattr(arg, "data") and hasattr(arg.data, "ptr"):
        return int(arg.data.ptr).to_bytes(8, "little")
    raise InputError(f"A kernel takes arrays, tensor maps and scalars, not a {type(arg).__name__}.")
