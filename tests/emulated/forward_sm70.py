"""The sm70 forward kernel on the emulator: one block for each tile of rows, of one ForwardCase."""

import numpy as np

from attention.kernels.sm70.forward.quad_pair.arguments import Launch, shape_of
from attention.variant import Config
from microbench.emulator import EmulatedDevice
from tests.emulated.forward_case import ForwardCase, Inputs, Outputs, inputs_of
from tests.emulated.forward_launch import Kernel, bring_features, describe, point, room_of

PATH = "sm70/forward/quad_pair"


def config_of(
    tile_keys: int = 64, *, warps: int = 4, warp_rows: int = 16, p_in_registers: int = 1, **others: int
) -> Config:
    """A point of the variant's space."""
    axes = {"warps": warps, "warp_rows": warp_rows, "tile_keys": tile_keys, "p_in_registers": p_in_registers}
    return Config(tuple((axes | others).items()))


def run(
    device: EmulatedDevice, case: ForwardCase, kernel: Kernel, *, section: int = 2, inputs: Inputs | None = None
) -> Outputs:
    """Launch it with so many heads in a section of the causal schedule. Raises DeviceError."""
    inputs, build = inputs or inputs_of(case), kernel.build
    room, launch = room_of(device, case, inputs), Launch()
    describe(launch, case, inputs, shape_of(kernel.problem, kernel.config).tile_rows, section)
    point(launch, room, *room.held)
    kept = bring_features(device, case, kernel.defines, inputs, launch)
    kernel.load(device)((launch.tiles,), (build.threads,), (np.void(bytes(launch)),), shared_mem=build.smem_bytes)
    del kept
    return room.outputs()
