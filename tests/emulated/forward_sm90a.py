"""The sm90a forward kernel on the emulator: the launch that its launcher makes, of one ForwardCase."""

import ctypes

import numpy as np

from attention.kernels.sm90a.forward.warp_specialised.arguments import GROUP_ROWS, Launch, shape_of
from attention.variant import Config
from microbench.emulator import EmulatedDevice, TensorMap
from tests.emulated.forward_case import ForwardCase, Inputs, Outputs, inputs_of
from tests.emulated.forward_launch import Kernel, bring_features, describe, point, room_of

PATH = "sm90a/forward/warp_specialised"


def config_of(tile_keys: int, warpgroups: int = 2, *, q_in_registers: int = 0) -> Config:
    """A point of the variant's space."""
    return Config(
        (("tile_keys", tile_keys), ("warpgroups", warpgroups), ("stages", 2), ("q_in_registers", q_in_registers))
    )


def run(
    device: EmulatedDevice,
    case: ForwardCase,
    kernel: Kernel,
    *,
    blocks: int = 2,
    section: int = 2,
    inputs: Inputs | None = None,
) -> Outputs:
    """Launch it with so many blocks, and heads of a section of the causal schedule. Raises DeviceError."""
    inputs, shape = inputs or inputs_of(case), shape_of(kernel.problem, kernel.config)
    room, launch, counters = room_of(device, case, inputs), Launch(blocks=blocks), device.full(2, 0, np.int32)
    describe(launch, case, inputs, shape.tile_rows, section)
    point(launch, room, "out")
    launch.slack, launch.counters = 8 / launch.scale_log2, counters.ctypes.data
    of_keys = shape.tile_keys, shape.key_panel
    for name, box in (("q", (GROUP_ROWS, of_keys[1])), ("k", of_keys), ("v", (of_keys[0], shape.value_panel))):
        element, swizzle = "bf16" if case.dtype == "bfloat16" else "f16", 2 * box[1]
        encoded = TensorMap(room.held[name].array, (1, 1, *box), element, swizzle=swizzle).emulated()
        ctypes.memmove(ctypes.addressof(getattr(launch, name)), encoded.tobytes(), len(encoded.tobytes()))
    kept = bring_features(device, case, kernel.defines, inputs, launch)
    kernel.load(device)((blocks,), (shape.threads,), (np.void(bytes(launch)),), shared_mem=shape.smem_bytes)
    del kept
    return room.outputs(f"left the counters at {counters}" if counters.any() else "")
