"""The source and flags that NVRTC compiles for a variant. Imports no torch, since the build matrix needs none."""

from pathlib import Path

from attention.variant import KERNELS, CudaBuild
from microbench.arch import Arch
from microbench.build import HEADERS, Source

COMMON = KERNELS / "common"


def source_of(folder: Path, build: CudaBuild, arch: Arch) -> Source:
    """The source of one build of a variant; its includes are the wrappers, common/ and its own folder."""
    file = folder / "kernel.cu"
    return Source(file.read_text(), file.name, arch, build.kernel, build.defines, (HEADERS, COMMON, folder))
