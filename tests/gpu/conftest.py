"""These tests need a GPU: without one they say so. What a run writes goes into a folder of the tests' own."""

from collections.abc import Iterator

import pytest

from microbench.device import open_device
from microbench.device.cuda import CudaDevice
from microbench.machine import nvml
from microbench.machine.arch import by_compute_capability


@pytest.fixture(scope="session", autouse=True)
def gpu() -> nvml.Gpu:
    """The first GPU, as NVML describes it."""
    found = nvml.visible_gpus()
    if not found:
        pytest.skip(f"needs a GPU: {nvml.why_no_gpu()}")
    return found[0]


@pytest.fixture
def hopper(gpu: nvml.Gpu) -> None:
    """For tests of kernels that attention.verify compiles for one architecture."""
    from attention.verify.builds import ARCH

    if (found := by_compute_capability(*gpu.compute_capability).name) != ARCH:
        pytest.skip(f"the kernels of these tests are compiled for {ARCH}, and this GPU is {found}")


@pytest.fixture(scope="module")
def device(gpu: nvml.Gpu) -> Iterator[CudaDevice]:
    """The same, opened as a probe's worker opens it."""
    opened = open_device("cuda:0")
    assert isinstance(opened, CudaDevice)
    yield opened
    opened.close()
