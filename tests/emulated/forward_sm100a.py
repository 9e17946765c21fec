"""The sm100a forward kernel on the emulator: the launch that its launcher makes, of one ForwardCase."""

import ctypes

import numpy as np

from attention.kernels.sm100a.forward.tensor_memory.arguments import ROWS, Launch, shape_of
from attention.variant import Config
from microbench.emulator import EmulatedDevice, TensorMap
from tests.emulated.forward_case import ForwardCase, Inputs, Outputs, inputs_of
from tests.emulated.forward_launch import Kernel, bring_features, describe, point, room_of

PATH = "sm100a/forward/tensor_memory"


def config_of(tile_keys: int = 64, *, polynomial: int = 0, dynamic: int = 1, cta_group: int = 1) -> Config:
    """A point of the variant's space."""
    chosen = {"tile_keys": tile_keys, "polynomial": polynomial, "dynamic": dynamic, "cta_group": cta_group}
    return Config(tuple(chosen.items()))


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
    element = "bf16" if case.dtype == "bfloat16" else "f16"
    of_keys, of_values = (shape.held_keys, shape.key_panel), (shape.tile_keys, shape.value_panel)
    for name, box in (("q", (ROWS, shape.key_panel)), ("k", of_keys), ("v", of_values)):
        encoded = TensorMap(room.held[name].array, (1, 1, *box), element, swizzle=2 * box[1]).emulated()
        ctypes.memmove(ctypes.addressof(getattr(launch, name)), encoded.tobytes(), len(encoded.tobytes()))
    kept = bring_features(device, case, kernel.defines, inputs, launch)
    given, cluster = (np.void(bytes(launch)),), (shape.cta_group,)
    kernel.load(device)((blocks,), (shape.threads,), given, shared_mem=shape.smem_bytes, cluster=cluster)
    del kept
    return room.outputs(f"left the counters at {counters}" if counters.any() else "")
