"""The sm80 forward kernel on the emulator: one block for each tile of rows, of one ForwardCase."""

from dataclasses import dataclass

import numpy as np

from attention.kernels.sm80.forward.software_pipelined.launch import KERNEL, Launch, build_of, shape_of
from attention.problem import AttentionProblem
from attention.variant import KERNELS, Config
from microbench.emulator import EmulatedDevice
from microbench.emulator.device import EmulatedKernel
from tests.emulated.forward_case import ForwardCase, Inputs, Outputs, inputs_of
from tests.emulated.forward_launch import bring_features, describe, headers_of
from tests.emulated.poisoned import placed

FOLDER = KERNELS / "sm80/forward/software_pipelined"
INCLUDE = headers_of(FOLDER)
SOURCE = (FOLDER / "kernel.cu").read_text()


@dataclass(frozen=True)
class Kernel:
    """A configuration, compiled for a problem; a case of that head dim may leave any of its features unused."""

    config: Config
    problem: AttentionProblem

    @property
    def defines(self) -> dict[str, int | str]:
        """What the launcher gives NVRTC."""
        return dict(build_of(self.problem, self.config).defines)

    def load(self, device: EmulatedDevice) -> EmulatedKernel:
        """Built for the emulator, or taken from the cache."""
        defines = tuple(self.defines.items())
        return device.load(SOURCE, "kernel.cu", kernel=KERNEL, defines=defines, include=INCLUDE)


def config_of(tile_keys: int, slice_keys: int, *, warps: int = 4, warp_rows: int = 32, **others: int) -> Config:
    """A point of the variant's space."""
    axes = {"warps": warps, "warp_rows": warp_rows, "tile_keys": tile_keys, "slice_keys": slice_keys}
    defaults = {"blocks": 1, "q_in_registers": 1, "ahead": 1, "fence": 0}
    return Config(tuple((axes | defaults | others).items()))


def run(
    device: EmulatedDevice, case: ForwardCase, kernel: Kernel, *, section: int = 2, inputs: Inputs | None = None
) -> Outputs:
    """Launch it with so many heads in a section of the causal schedule. Raises DeviceError."""
    inputs = inputs or inputs_of(case)
    built = build_of(kernel.problem, kernel.config)
    tile_rows = shape_of(kernel.problem, kernel.config).tile_rows
    held = {name: placed(device, case.memory, getattr(inputs, name).shape) for name in "qkv"}
    for name, place in held.items():
        place.array[...] = getattr(inputs, name)
    held["out"] = placed(device, case.memory, inputs.q.shape)
    lse = device.full((3, *inputs.q.shape[:3]), np.nan, np.float32)  # the middle one is the kernel's
    launch = Launch()
    describe(launch, case, tile_rows, section)
    for name, place in held.items():
        setattr(launch, name, place.array.ctypes.data)
        for axis, stride in zip(("batch", "head", "row"), place.array.strides, strict=False):
            setattr(launch, f"{name}_{axis}", stride // 2)
    launch.lse = lse[1].ctypes.data
    launch.queries, launch.keys = inputs.q.shape[2], inputs.k.shape[2]
    kept = bring_features(device, case, kernel.defines, inputs, launch)
    kernel.load(device)((launch.tiles,), (built.threads,), (np.void(bytes(launch)),), shared_mem=built.smem_bytes)
    strays = (
        (not all(place.untouched for place in held.values()), "wrote beside a tensor"),
        (not np.isnan(lse[::2]).all(), "wrote beside lse"),
    )
    del kept
    return Outputs(held["out"].array.copy(), lse[1].copy(), next((said for strayed, said in strays if strayed), ""))
