"""How a GPU kernel is launched, by what CuPy and the driver are asked for: no GPU is here."""

import ctypes
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from microbench.device.cuda_kernel import CudaKernel
from microbench.errors import DeviceError, InputError

driver = pytest.importorskip("cuda.bindings.driver", reason="cuda-bindings is not installed")


class CupyFunction:
    """What CuPy's kernels offer, keeping what they were asked for."""

    kernel = SimpleNamespace(ptr=0x1234)
    max_dynamic_shared_size_bytes = 48 * 1024

    def __init__(self) -> None:
        self.calls: list[tuple[Any, ...]] = []

    def __call__(self, *args: Any, shared_mem: int) -> None:
        self.calls.append((*args, shared_mem))


@pytest.fixture
def kernel() -> CudaKernel:
    return CudaKernel(CupyFunction(), SimpleNamespace(ptr=7))


def test_without_a_cluster_the_call_is_cupys(kernel: CudaKernel) -> None:
    kernel((4,), (32,), [1], 1024)
    assert kernel.function.calls == [((4,), (32,), (1,), 1024)]


def test_more_shared_memory_is_asked_for_once_it_is_needed(kernel: CudaKernel) -> None:
    for smem, granted in ((1024, 48 * 1024), (100_000, 100_000), (60_000, 100_000)):
        kernel((1,), (32,), (), shared_mem=smem)
        assert kernel.function.max_dynamic_shared_size_bytes == granted


def test_a_cluster_goes_to_the_driver_with_its_arguments(kernel: CudaKernel, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: dict[str, Any] = {}

    def launch(config: Any, function: Any, pointers: int, extra: int) -> tuple[Any]:
        at = (ctypes.c_uint64 * 4).from_address(pointers)
        sizes = (8, 4, 4, 128)
        seen["arguments"] = [ctypes.string_at(address, size) for address, size in zip(at, sizes, strict=True)]
        side = config.attrs[0].value.clusterDim
        seen["config"] = (
            (config.gridDimX, config.gridDimY, config.gridDimZ),
            (config.blockDimX, config.blockDimY, config.blockDimZ),
            (side.x, side.y, side.z),
            (config.sharedMemBytes, int(config.hStream), int(function), config.numAttrs, extra),
        )
        return (driver.CUresult.CUDA_SUCCESS,)

    monkeypatch.setattr(driver, "cuLaunchKernelEx", launch)
    array = SimpleNamespace(data=SimpleNamespace(ptr=0xABCDEF0123))
    tensor_map = np.frombuffer(bytes(range(128)), np.dtype((np.void, 128)))[0]
    kernel((4, 2), (160,), (array, -3, 0.5, tensor_map), 50_000, cluster=(2,))
    assert seen["config"] == ((4, 2, 1), (160, 1, 1), (2, 1, 1), (50_000, 7, 0x1234, 1, 0))
    expected = [np.uint64(0xABCDEF0123).tobytes(), np.int32(-3).tobytes(), np.float32(0.5).tobytes(), bytes(range(128))]
    assert seen["arguments"] == expected
    assert not kernel.function.calls


def test_a_refused_cluster_is_one_sentence(kernel: CudaKernel, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(driver, "cuLaunchKernelEx", lambda *_: (driver.CUresult.CUDA_ERROR_INVALID_CLUSTER_SIZE,))
    with pytest.raises(DeviceError, match=r"clusters of \(16,\) .* CUDA_ERROR_INVALID_CLUSTER_SIZE"):
        kernel((16,), (32,), (), cluster=(16,))
    with pytest.raises(InputError, match="not a str"):
        kernel((16,), (32,), ("text",), cluster=(2,))
