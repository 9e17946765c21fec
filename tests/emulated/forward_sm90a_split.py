"""The sm90a kernel for few tiles of rows on the emulator: all parts of their keys, of one ForwardCase."""

from dataclasses import replace

import numpy as np

from attention.kernels.sm90a.forward.split_keys.arguments import Launch, shape_of
from attention.variant import Config
from microbench.emulator import EmulatedDevice
from tests.emulated.forward_case import ForwardCase, Inputs, Outputs
from tests.emulated.forward_launch import Kernel
from tests.emulated.forward_sm90a import run_with

PATH = "sm90a/forward/split_keys"


def config_of(tile_keys: int, warpgroups: int = 2, key_splits: int = 2) -> Config:
    """A point of the variant's space."""
    return Config((("tile_keys", tile_keys), ("warpgroups", warpgroups), ("key_splits", key_splits)))


def run(
    device: EmulatedDevice,
    case: ForwardCase,
    kernel: Kernel,
    *,
    blocks: int = 2,
    section: int = 2,
    inputs: Inputs | None = None,
    key_splits: int = 0,
) -> Outputs:
    """Launch it with so many blocks and parts; all counters are 0 again behind it. Raises DeviceError."""
    shape = shape_of(kernel.problem, kernel.config)
    parts = key_splits or shape.key_splits
    heads, rows = case.heads_q // shape.group, case.longest[0] * shape.group
    tiles = (len(case.lengths) or case.batch) * heads * -(-rows // shape.tile_rows)
    partials = device.full(tiles * parts * shape.partial_floats, np.nan, np.float32)
    arrivals = device.full(tiles * parts + 1, 0, np.int32)
    launch = Launch(blocks=blocks, key_splits=parts)
    launch.partials, launch.arrivals = partials.ctypes.data, arrivals.ctypes.data
    outputs = run_with(launch, shape, device, case, kernel, section, inputs)
    return replace(outputs, strayed="left arrivals that are not 0") if arrivals.any() else outputs
