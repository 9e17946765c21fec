"""The sm100a forward kernel on the emulator: the launch that its launcher makes, of one ForwardCase."""

import ctypes

import numpy as np

from attention.kernels.sm100a.forward.tensor_memory.arguments import ROWS, Launch, shape_of
from attention.variant import Config
from microbench.emulator import EmulatedDevice, TensorMap
from tests.emulated.forward_case import ForwardCase, Inputs, Outputs, inputs_of
from tests.emulated.forward_launch import Kernel, bring_features, describe, point, room_of

PATH = "sm100a/forward/tensor_memory"


def config_of(tile_keys: int = 64, *, polynomial: int = 0, dynamic: int = 1) -> Config:
    """A point of the variant's space."""
    return Config((("tile_keys", tile_keys), ("polynomial", polynomial), ("dynamic", dynamic)))


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
    for name, rows in (("q", ROWS), ("k", shape.tile_keys), ("v", shape.tile_keys)):
        box, element = (1, 1, rows, shape.panel_width), "bf16" if case.dtype == "bfloat16" else "f16"
        swizzle = 128 if shape.panel_width == 64 else 64
        encoded = TensorMap(room.held[name].array, box, element, swizzle=swizzle).emulated()
        ctypes.memmove(ctypes.addressof(getattr(launch, name)), encoded.tobytes(), len(encoded.tobytes()))
    kept = bring_features(device, case, kernel.defines, inputs, launch)
    kernel.load(device)((blocks,), (shape.threads,), (np.void(bytes(launch)),), shared_mem=shape.smem_bytes)
    del kept
    return room.outputs(f"left the counters at {counters}" if counters.any() else "")
