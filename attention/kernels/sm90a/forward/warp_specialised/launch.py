"""The launch: tensor maps to the kernel, and blocks that stay, at most one an SM."""

from pathlib import Path
from typing import Any

import torch

from attention.kernels.launch.aligned import aligned
from attention.kernels.launch.launcher import Launcher
from attention.kernels.launch.machine import Machine
from attention.kernels.sm90a.forward.warp_specialised.arguments import (
    GROUP_ROWS,
    Launch,
    Shape,
    build_of,
    shape_of,
)


def _deal(launch: Any, machine: Machine, shape: Shape) -> int:
    launch.tiles //= shape.cluster
    launch.section = -(-launch.section // shape.cluster)
    launch.blocks = shape.cluster * min(machine.sm_count // shape.cluster, launch.tiles)
    return int(launch.blocks)


def _maps(machine: Machine, shape: Shape, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor) -> bytes:
    boxes = (GROUP_ROWS, shape.key_panel), (shape.tile_keys, shape.key_panel), (shape.tile_keys, shape.value_panel)
    return b"".join(
        machine.tensor_map(tensor, box, 2 * box[1]) for tensor, box in zip((query, key, value), boxes, strict=True)
    )


def _boxed(machine: Machine, shape: Shape, mask: torch.Tensor) -> bytes:
    """A warp's rows at a time, or of a pair half a warpgroup's, as far apart as shared memory has them. No swizzle.

    `mask`: (B, Hq, Sq, Skv), or without axes before Sq that are alike.
    """
    mask = mask[(None,) * (4 - mask.dim())]
    batch, heads, *_ = mask.stride()
    own = mask[slice(None if batch else 1), slice(None if heads else 1)]
    return machine.tensor_map(own, (shape.box_rows, shape.ahead_row // mask.element_size()), 0)


forward = Launcher(
    *(Path(__file__).parent, Launch, shape_of, build_of, _deal, _maps), bring=aligned, boxed=_boxed, counts=True
)
