"""Cubins of variants, compiled at first use, kept on disk, and loaded once per device."""

import threading
from functools import cache
from pathlib import Path

import torch

from attention.cuda import driver
from attention.cuda.driver import Function
from attention.errors import LaunchError
from attention.variant import KERNELS
from microbench.arch import Arch, by_compute_capability
from microbench.build import HEADERS, Defines, Source, compile_all

COMMON = KERNELS / "common"
_loading = threading.Lock()


def source_of(folder: Path, kernel: str, arch: Arch, defines: Defines) -> Source:
    """The source of one variant with one configuration; its includes are the wrappers, common/ and its own folder."""
    file = folder / "kernel.cu"
    return Source(file.read_text(), file.name, arch, kernel, defines, (HEADERS, COMMON, folder))


def function_of(device: torch.device, folder: Path, kernel: str, defines: Defines, smem_bytes: int) -> Function:
    """The loaded kernel for `device`; the first call compiles it, or takes it from the cache on disk.

    Raises BuildError where it does not compile, LaunchError where the GPU refuses it.
    """
    with _loading:
        return _function(device.index or 0, folder, kernel, defines, smem_bytes)


@cache
def _function(index: int, folder: Path, kernel: str, defines: Defines, smem_bytes: int) -> Function:
    if torch.cuda.is_current_stream_capturing():
        raise LaunchError(
            f"{kernel} is not loaded on {torch.cuda.get_device_name(index)} yet, and cannot be while a CUDA graph is "
            "captured; call it once with these shapes before."
        )
    arch = by_compute_capability(*torch.cuda.get_device_capability(index))
    (cubin,) = compile_all([source_of(folder, kernel, arch, defines)])
    if isinstance(cubin, Exception):
        raise cubin
    with torch.cuda.device(index):
        return driver.load(cubin.image, kernel, smem_bytes)
