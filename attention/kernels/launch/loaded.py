"""Cubins of variants, compiled at first use, kept on disk, and loaded once per device."""

import threading
from functools import cache
from pathlib import Path

import torch

from attention.errors import LaunchError
from attention.kernels.launch import driver, waiting
from attention.kernels.launch.driver import Function
from attention.kernels.launch.source import source_of
from attention.variant import CudaBuild
from microbench.compile import Cubin, compile_all
from microbench.machine.arch import Arch, by_compute_capability

_loading = threading.Lock()


def cubin_of(folder: Path, build: CudaBuild, arch: Arch) -> Cubin:
    """The compiled kernel, from the cache on disk or by NVRTC. Raises BuildError where it does not compile."""
    (cubin,) = compile_all([source_of(folder, build, arch)])
    if isinstance(cubin, Exception):
        raise cubin
    return cubin


def function_of(device: torch.device, folder: Path, build: CudaBuild) -> Function:
    """The loaded kernel for `device`; the first call compiles it, or takes it from the cache on disk.

    Raises BuildError where it does not compile, LaunchError where the GPU refuses it.
    """
    with _loading:
        return _function(device.index or 0, folder, build)


@cache
def _function(index: int, folder: Path, build: CudaBuild) -> Function:
    if torch.cuda.is_current_stream_capturing():
        raise LaunchError(
            f"{build.kernel} is not loaded on {torch.cuda.get_device_name(index)} yet, and cannot be loaded while a "
            "CUDA graph is captured; call it once with these shapes before the capture."
        )
    arch = by_compute_capability(*torch.cuda.get_device_capability(index))
    with waiting.said(folder, build, arch):
        cubin = cubin_of(folder, build, arch)
    with torch.cuda.device(index):
        return driver.load(cubin.image, build.kernel, build.smem_bytes, build.cluster)
