"""The wheels that compile our kernels and read their machine code: which of them to install, all in one command.

They come with no dependency of ours, for a GPU is measured and served without them where its cubins are cached.
"""

import os
import shutil
from collections.abc import Iterable

from microbench.machine import toolkit

NVRTC = "nvidia-cuda-nvrtc-cu12==12.9.86"
NVDISASM = "nvidia-cuda-nvdisasm"
NUMBA_CUDA = '"numba-cuda[cu12]"'
TOOLS = (NVRTC, NVDISASM, NUMBA_CUDA)


def nvdisasm() -> str | None:
    """The path of nvdisasm: in a wheel, on the search path, else in an installed toolkit."""
    for file, _ in toolkit.wheel_files(("nvidia-cuda-nvdisasm", "nvidia-cuda-nvdisasm-cu12"), "nvdisasm"):
        return str(file)
    folders = [str(root / "bin") for root in toolkit.roots()]
    return shutil.which("nvdisasm") or shutil.which("nvdisasm", path=os.pathsep.join(folders))


def for_sass() -> str:
    """The command that adds NVRTC, and nvdisasm where that is missing too: a kernel is compiled in order to be read."""
    return install((NVRTC,) if nvdisasm() else (NVRTC, NVDISASM))


def install(wheels: Iterable[str]) -> str:
    return f"pip install {' '.join(wheels)}"


def named(reasons: Iterable[str]) -> tuple[str, ...]:
    """The wheels that these sentences ask for."""
    told = tuple(reasons)
    return tuple(wheel for wheel in TOOLS if any(wheel in reason for reason in told))
