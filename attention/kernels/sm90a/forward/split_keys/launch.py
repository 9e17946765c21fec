"""The launch: that of the kernel for many rows, over the parts of all tiles, with room for what these leave."""

from pathlib import Path
from typing import Any

from attention.errors import LaunchError
from attention.kernels.common.key_splits import MOST_TILES
from attention.kernels.launch.launcher import Launcher, lateness
from attention.kernels.launch.machine import Machine
from attention.kernels.sm90a.forward.split_keys.arguments import Launch, Shape, build_of, shape_of
from attention.kernels.sm90a.forward.warp_specialised.launch import maps

KEPT_BYTES = 32 << 20  # of an L2 of 50, as common.family.section_of has it


def _deal(launch: Any, machine: Machine, shape: Shape) -> int:
    """Sections of heads whose K and V stay in the L2: of more keys some rows of a head would bring them again.

    Of eight heads with 32768 keys that took an H100 a fifth of the time; one after another, few heads of causal rows
    begin their longest late.
    """
    of_head = 2 * launch.keys * (shape.head_dim + shape.value_dim) // (launch.heads_per_kv // shape.group)
    launch.section = min(launch.section, max(1, KEPT_BYTES // of_head))
    launch.key_splits = shape.key_splits
    launch.blocks = min(machine.sm_count, launch.tiles * shape.key_splits)
    return int(launch.blocks)


def _room(launch: Any, shape: Shape) -> int:
    """Of all parts, each of which has a counter, and one is of all blocks."""
    parts = int(launch.tiles * shape.key_splits)
    if parts >= MOST_TILES:
        raise LaunchError(f"{parts} parts of keys are dealt to blocks, but counters are for {MOST_TILES - 1}.")
    return parts * shape.partial_floats


forward = Launcher(*(Path(__file__).parent, Launch, shape_of, build_of, _deal, maps, lateness, _room), counts=True)
