"""The emulator's half: what it makes of a case."""

from collections.abc import Iterable
from typing import Any

import numpy as np

from microbench.emulator import EmulatedDevice, EmulatedKernel, Mode, TensorMap
from microbench.verify.differential.case import Array, Buffer, Launch, Map
from microbench.verify.differential.catalogue import cases


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
