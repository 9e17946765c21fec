"""The source and flags that NVRTC compiles for a variant. Imports no torch, since the build matrix needs none."""

import importlib
from functools import cache
from pathlib import Path

from attention.kernels.launch.launch_struct import features_text, launch_text
from attention.problem import AttentionProblem
from attention.variant import KERNELS, Config, CudaBuild, Variant
from microbench.compile import HEADERS, Source
from microbench.machine.arch import Arch

PACKAGE = KERNELS.parent  # features/<name>.cuh lie there
COMMON = KERNELS / "common"


def folders_of(folder: Path) -> tuple[Path, ...]:
    """Where headers of a variant lie: those of all kernels, its own, and those of the kernels of its generation."""
    shared = folder.parents[1] / "common"
    return (COMMON, folder, shared) if shared.is_dir() else (COMMON, folder)


def device_code(folder: Path) -> Path | None:
    """The one .cu of a variant's folder, <pass>_<arch>.cu; None where it is no CUDA kernel."""
    return next(iter(folder.glob("*.cu")), None)


def source_of(folder: Path, build: CudaBuild, arch: Arch) -> Source:
    """The source of one build of a variant; its includes are the wrappers, features/, and the folders of headers."""
    file = device_code(folder)
    assert file is not None, f"{folder} has no .cu"
    include = (HEADERS, *folders_of(folder), PACKAGE)
    return Source(file.read_text(), file.name, arch, build.kernel, build.defines, include, generated=generated(folder))


@cache
def generated(folder: Path) -> tuple[tuple[str, str], ...]:
    """Headers that are written from descriptions: launch.cuh from that of the kernel's argument, and features.cuh."""
    if not folder.is_relative_to(KERNELS):
        return ()
    path = ".".join(folder.relative_to(KERNELS).parts)
    arguments = importlib.import_module(f"attention.kernels.{path}.arguments")
    return ("launch.cuh", launch_text(arguments.FIELDS)), ("features.cuh", features_text())


def sources_of(variant: Variant, problem: AttentionProblem, config: Config, arch: Arch) -> list[Source]:
    """The sources of all steps of a configuration."""
    return [source_of(variant.folder, step, arch) for step in variant.steps(problem, config)]
