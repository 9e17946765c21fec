"""The source and flags that NVRTC compiles for a variant. Imports no torch, since the build matrix needs none."""

from pathlib import Path

from attention.problem import AttentionProblem
from attention.variant import KERNELS, Config, CudaBuild, Variant
from microbench.arch import Arch
from microbench.build import HEADERS, Source

COMMON = KERNELS / "common"


def source_of(folder: Path, build: CudaBuild, arch: Arch) -> Source:
    """The source of one build of a variant; its includes are the wrappers, common/ and its own folder."""
    file = folder / "kernel.cu"
    return Source(file.read_text(), file.name, arch, build.kernel, build.defines, (HEADERS, COMMON, folder))


def sources_of(variant: Variant, problem: AttentionProblem, config: Config, arch: Arch) -> list[Source]:
    """The sources of all steps of a configuration."""
    return [source_of(variant.folder, step, arch) for step in variant.steps(problem, config)]
