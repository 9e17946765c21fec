"""The emulator's half: what it makes of a case, now or from a file that another machine wrote."""

import itertools
import multiprocessing
import os
from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

from microbench.console.progress import watching
from microbench.emulator import EmulatedDevice, EmulatedKernel, Mode, TensorMap, toolchain
from microbench.verify.differential.case import Array, Buffer, Defines, Launch, Map
from microbench.verify.differential.catalogue import SEEDS, cases, chunks
from microbench.verify.differential.score import Kept, kept


def emulated(number: int, seeds: range, mode: Mode = "lazy") -> Array:
    """What the emulator makes of a case: all outputs of all launches, flat and one after another."""
    case, device = cases()[number], EmulatedDevice(mode, races=False)
    kernel = device.load(case.source.read_text(), case.source.name, kernel=case.kernel, defines=case.defines)
    return results(device, kernel, case.launches(seeds))


def results(device: EmulatedDevice, kernel: EmulatedKernel, launches: Iterable[Launch]) -> Array:
    """What these launches leave, likewise."""
    found = []
    for launch in launches:
        arrays = [device.asarray(each) for each in launch.arrays]
        kernel(launch.grid, launch.block, _arguments(launch, arrays), shared_mem=launch.smem_bytes)
        found += [np.array(arrays[i]).ravel() for i in launch.outputs]
    return np.concatenate(found)


def _arguments(launch: Launch, arrays: list[Array]) -> tuple[Any, ...]:
    def one(arg: Buffer | Map | int | float) -> Any:
        if isinstance(arg, Buffer):
            return arrays[arg.index]
        if isinstance(arg, Map):
            return TensorMap(arrays[arg.index], arg.box, arg.element, arg.swizzle).emulated()
        return arg

    return tuple(map(one, launch.args))


def build(numbers: Iterable[int]) -> int:
    """Compile their kernels for the emulator on all cores; how many there are. Raises EnvironmentLacks, BuildError."""
    toolchain.runtime()
    once = {(cases()[i].source, cases()[i].kernel, cases()[i].defines) for i in numbers}
    with watching(len(once)) as watcher, ThreadPoolExecutor(os.cpu_count()) as pool:
        watcher.doing("the emulator's kernels", "")
        for _ in pool.map(lambda of: _build(*of), once):
            watcher.finished()
    return len(once)


def _build(source: Path, kernel: str, defines: Defines) -> None:
    toolchain.build_kernel(source.read_text(), source.name, kernel, defines, watched=False)  # as without races


class Saved:
    """A file with the emulator's results. Raises OSError where there is none."""

    def __init__(self, file: Path) -> None:
        self._arrays = np.load(file)

    def of(self, number: int, seeds: range) -> Kept:
        """What it keeps of these seeds of a case. Raises KeyError where another catalogue wrote it."""
        key = f"{cases()[number].key} {seeds.start}"
        return Kept(self._arrays[f"{key} digest"], self._arrays[f"{key} sample"])


def save(file: Path, seeds: int = SEEDS) -> None:
    """Write the results of every case for machines that cannot emulate."""
    everything = range(len(cases()))
    build(everything)
    arrays: dict[str, Array] = {}
    context = multiprocessing.get_context("spawn")
    jobs = list(itertools.product(everything, chunks(seeds)))
    with watching(len(jobs)) as watcher, ProcessPoolExecutor(os.cpu_count(), mp_context=context) as pool:
        watcher.doing("emulating", "")
        for (number, part), keeping in zip(jobs, pool.map(_keep, *zip(*jobs, strict=True), chunksize=8), strict=True):
            key = f"{cases()[number].key} {part.start}"
            arrays |= {f"{key} digest": keeping.digest, f"{key} sample": keeping.sample}
            watcher.finished()
    np.savez_compressed(file, **arrays)  # type: ignore[arg-type]


def _keep(number: int, seeds: range) -> Kept:
    return kept(emulated(number, seeds))
