"""The launch: tensor maps to the kernel, and blocks that stay, at most one an SM."""

from pathlib import Path
from typing import Any

import torch

from attention.kernels.launch.aligned import aligned
from attention.kernels.launch.launcher import Launcher, lateness
from attention.kernels.launch.machine import Machine
from attention.kernels.sm90a.forward.warp_specialised.arguments import Launch, Shape, build_of, shape_of
from attention.kernels.sm90a.packed import GROUP_ROWS, queries_of


def _deal(launch: Any, machine: Machine, shape: Shape) -> int:
    deal_to_clusters(launch, shape)
    launch.blocks = shape.cluster * min(machine.sm_count // shape.cluster, launch.tiles)
    return int(launch.blocks)


def deal_to_clusters(launch: Any, shape: Shape) -> None:
    """Each number of the schedule is of a cluster: of its neighbouring heads, or of neighbouring tiles of rows."""
    if shape.shares_keys:
        heads = launch.tiles // launch.row_tiles
        launch.row_tiles = -(-launch.row_tiles // shape.cluster)
        launch.tiles = launch.row_tiles * heads
    else:
        launch.tiles //= shape.cluster
        launch.section = -(-launch.section // shape.cluster)


def maps(machine: Machine, shape: Shape, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor) -> bytes:
    """How TMA reads Q, K and V: a box of a warpgroup's rows, or of what a block fetches of a tile's keys, a panel wide.

    Of heads that share rows, of as many queries of the group as a warpgroup holds.
    """
    of_keys, of_values = (shape.box_keys, shape.key_panel), (shape.box_keys, shape.value_panel)
    of_queries: tuple[int, ...] = GROUP_ROWS, shape.key_panel
    if shape.group > 1:
        query, of_queries = _by_groups(query, shape.group), (queries_of(shape.group), shape.group, shape.key_panel)
    boxes = (query, of_queries), (key, of_keys), (value, of_values)
    return b"".join(machine.tensor_map(tensor, box, 2 * box[-1]) for tensor, box in boxes)


def _by_groups(query: torch.Tensor, group: int) -> torch.Tensor:
    """(B, H, S, D) as (B, H / group, S, group, D)."""
    (batch, heads, rows, width), (of_batch, of_head, of_row, unit) = query.shape, query.stride()
    size, strides = (batch, heads // group, rows, group, width), (of_batch, group * of_head, of_row, of_head, unit)
    return query.as_strided(size, strides)


def _boxed(machine: Machine, shape: Shape, mask: torch.Tensor) -> bytes:
    """A warp's rows at a time, or of a pair half a warpgroup's, as far apart as shared memory has them. No swizzle.

    What lies between rows in shared memory is read of a mask too, a line of the L2 more a row, but where TMA is told
    that keys end with their tile: as an axis of tiles, which takes the place of heads that all have the same rows. Of
    float32 that took an H100 12 % less time at head dim 64, of others nothing.

    `mask`: (B, Hq, Sq, Skv), or without axes before Sq that are alike.
    """
    mask = mask[(None,) * (4 - mask.dim())]
    batch, heads, *_ = mask.stride()
    own = mask[slice(None if batch else 1), slice(None if heads else 1)]
    tiles, beyond = divmod(mask.shape[-1], shape.tile_keys)
    in_tiles = shape.cluster > 1 and mask.dtype is torch.float32 and own.shape[1] == 1 and not beyond
    if in_tiles:
        own = own.view(own.shape[0], own.shape[2], tiles, shape.tile_keys).transpose(1, 2)
    encoded = machine.tensor_map(own, (shape.box_rows, shape.ahead_row // mask.element_size()), 0)
    return encoded + int(in_tiles).to_bytes(4, "little")


forward = Launcher(
    *(Path(__file__).parent, Launch, shape_of, build_of, _deal, maps, lateness),
    bring=aligned,
    boxed=_boxed,
    counts=True,
)
