"""Cubins of earlier texts beside those of today's, on this GPU, for timings that shall hold on.

    python -m attention.compare.beside FOLDER      holds <sha256>.cubin of every cubin that was timed

Where a kernel's code has changed, what was timed of it is of another kernel. Where the new one takes no more than 1 %
longer, in turns with the old one on the longest problem that it was timed on, its timings go on (timed.cubins).
"""

import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import torch

from attention.compare import cells, rows
from attention.compare.candidates import ours
from attention.compare.cells import Cell
from attention.compare.graphed import Graphed
from attention.compare.run import opened
from attention.errors import LaunchError
from attention.kernels.launch import driver
from attention.kernels.launch.driver import Function
from attention.kernels.launch.loaded import cubin_of
from attention.kernels.launch.machine import Gpu, standing_in
from attention.timed import cubins, timings
from attention.timed.named import config_of
from attention.timed.timing import Timing
from attention.variant import Config, CudaBuild, Variant, by_path
from microbench.console.progress import watching
from microbench.device.cuda import CudaDevice
from microbench.machine.arch import by_compute_capability
from microbench.measure.alternate import alternate

REPEATS = 41


@dataclass(frozen=True)
class Old:
    """A cubin of an earlier text, and the timing of it that is compared."""

    image: bytes
    code: str
    timing: Timing
    variant: Variant
    config: Config
    build: CudaBuild


@dataclass(frozen=True, eq=False)
class GpuOfOneCubin(Gpu):
    """A GPU that launches this function, whatever build is asked for."""

    only: Function

    def function(self, folder: Path, build: CudaBuild) -> Function:
        return self.only


def beside(folder: Path, device: CudaDevice) -> Iterator[cubins.Beside]:
    """A row for each build whose code is another one today."""
    arch, run = by_compute_capability(*torch.cuda.get_device_capability()), rows.new_run()
    found = list(_old(folder, device.machine.gpu))
    with watching(len(found)) as watcher:
        for old in found:
            watcher.doing(old.variant.name, str(old.config))
            new = cubin_of(old.variant.folder, old.build, arch)
            if old.code != new.code_sha256:
                timed = alternate(
                    device,
                    dict(zip(("old", "new"), _calls(old, new.image), strict=True)),
                    run,
                    torch.cuda.current_stream().cuda_stream,
                    REPEATS,
                )
                yield cubins.Beside(
                    gpu=device.machine.gpu,
                    run=run,
                    variant=old.variant.path,
                    problem=str(old.timing.problem),
                    config=dict(old.config.values),
                    old_code_sha256=old.code,
                    new_code_sha256=new.code_sha256,
                    old_seconds=median(timed["old"].seconds),
                    new_seconds=median(timed["new"].seconds),
                    n=REPEATS,
                    clock_mhz=timed["new"].clock_mhz,
                    flags=timed["new"].flags,
                )
            watcher.finished()


def _old(folder: Path, gpu: str) -> Iterator[Old]:
    longest: dict[str, Timing] = {}
    for timing in timings.read(gpu)[0]:
        cubin = timing.cubin_sha256 or ""
        if (folder / f"{cubin}.cubin").is_file():
            known = longest.get(cubin)
            if known is None or timing.problem.flops > known.problem.flops:
                longest[cubin] = timing
    for cubin, timing in longest.items():
        variant = by_path(timing.variant)
        config = config_of(variant, timing.problem, timing.config)
        (build,) = variant.steps(timing.problem, config)
        codes = {line.cubin_sha256: line.code_sha256 for line in cubins.read(variant)}
        if (code := codes.get(cubin)) is not None:
            yield Old((folder / f"{cubin}.cubin").read_bytes(), code, timing, variant, config, build)


def _calls(old: Old, image: bytes) -> Iterator[Callable[[], Any]]:
    """The same call by the launcher of the variant, once with each image."""
    cell = Cell(old.timing.problem, lengths=old.timing.lengths)
    call = ours(old.variant, old.config).prepare(cell.problem, cells.tensors(cell, "cuda"))
    for each in (old.image, image):
        function = driver.load(each, old.build.kernel, old.build.smem_bytes, old.build.cluster)
        with standing_in("cuda", GpuOfOneCubin(torch.cuda.current_device(), function)):
            graph = Graphed(call)
        if not graph.captured:
            raise LaunchError(f"{old.variant.name} with {old.config} cannot be captured on this GPU; nothing is timed.")
        yield graph.replay


if __name__ == "__main__":
    with torch.no_grad():
        for row in beside(Path(sys.argv[1]), opened()):
            cubins.write_beside(row)
            print(f"{row.new_seconds / row.old_seconds:.4f} {row.problem} {row.config}", flush=True)
