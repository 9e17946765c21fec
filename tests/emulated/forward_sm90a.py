"""The sm90a forward kernel on the emulator: the launch that its launcher makes, of one ForwardCase."""

import ctypes
from typing import Any

import numpy as np

from attention.kernels.sm90a.forward.warp_specialised.arguments import SHARED_KEYS, Launch, Shape, shape_of
from attention.kernels.sm90a.forward.warp_specialised.launch import deal_to_clusters
from attention.kernels.sm90a.packed import GROUP_ROWS, queries_of
from attention.tile import RING
from attention.variant import Config
from microbench.emulator import EmulatedDevice, TensorMap
from microbench.emulator.tensor_map import Element
from tests.emulated.forward_case import Array, ForwardCase, Inputs, Outputs, inputs_of
from tests.emulated.forward_launch import Kernel, bring_features, describe, mask_of, point, room_of

PATH = "sm90a/forward/warp_specialised"


def config_of(tile_keys: int, warpgroups: int = 2, *, stages: int = RING, q_in_registers: int = 0) -> Config:
    """A point of the variant's space."""
    return Config(
        (("tile_keys", tile_keys), ("warpgroups", warpgroups), ("stages", stages), ("q_in_registers", q_in_registers))
    )


def without_turns(config: Config) -> Config:
    """The same where a warpgroup issues its products when it may."""
    return Config((*config.values, ("pingpong", 0)))


def in_blocks_of(count: int, config: Config) -> Config:
    """The same where so many blocks share a mask's rows."""
    return Config((*config.values, ("cluster", count)))


def in_pairs_on_keys(config: Config) -> Config:
    """The same where two blocks share K and V."""
    return Config((*config.values, ("cluster", 2), (SHARED_KEYS, 1)))


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
    return run_with(
        Launch(blocks=blocks), shape_of(kernel.problem, kernel.config), device, case, kernel, section, inputs
    )


def run_with(
    launch: Any,
    shape: Shape,
    device: EmulatedDevice,
    case: ForwardCase,
    kernel: Kernel,
    section: int,
    inputs: Inputs | None,
) -> Outputs:
    """The same of any kernel whose argument begins as this one's."""
    inputs = inputs or inputs_of(case)
    room, counters = room_of(device, case, inputs), device.full(2, 0, np.int32)
    describe(launch, case, inputs, shape.tile_rows, section, "DEALT" in kernel.defines, shape.group)
    point(launch, room, "out")
    deal_to_clusters(launch, shape)
    launch.counters = counters.ctypes.data
    queries = room.held["q"].array
    of_queries: tuple[int, ...] = 1, GROUP_ROWS, shape.key_panel
    if shape.group > 1:
        queries, of_queries = by_groups(queries, shape.group), (queries_of(shape.group), shape.group, shape.key_panel)
    boxes = (
        ("q", queries, of_queries),
        *(
            (name, room.held[name].array, (1, shape.box_keys, panel))
            for name, panel in (("k", shape.key_panel), ("v", shape.value_panel))
        ),
    )
    for name, array, box in boxes:
        element, swizzle = "bf16" if case.dtype == "bfloat16" else "f16", 2 * box[-1]
        sides = (*(1,) * (array.ndim - len(box)), *box)
        encoded = TensorMap(array, sides, element, swizzle=swizzle).emulated()
        ctypes.memmove(ctypes.addressof(getattr(launch, name)), encoded.tobytes(), len(encoded.tobytes()))
    kept = bring_features(device, case, kernel.defines, inputs, launch)
    if shape.mask_boxes:
        kept.append(box_mask(device, case, inputs, launch, shape))
    kernel.load(device)(
        (launch.blocks,),
        (shape.threads,),
        (np.void(bytes(launch)),),
        shared_mem=shape.smem_bytes,
        cluster=(shape.cluster,),
    )
    del kept
    return room.outputs(f"left the counters at {counters}" if counters.any() else "")


def by_groups(array: Array, group: int) -> Array:
    """(B, H, S, D) as (B, H / group, S, group, D), where it lies."""
    (batch, heads, rows, width), (of_batch, of_head, of_row, unit) = array.shape, array.strides
    size, strides = (batch, heads // group, rows, group, width), (of_batch, group * of_head, of_row, of_head, unit)
    return np.lib.stride_tricks.as_strided(array, size, strides)


def box_mask(device: EmulatedDevice, case: ForwardCase, inputs: Inputs, launch: Any, shape: Shape) -> Array:
    """Describe the case's mask to TMA, one of True or 0 where it has none; its rows, which begin at whole 16 bytes."""
    given = mask_of(case, inputs)
    keys = given.shape[-1]
    held = np.zeros((*given.shape[:-1], -(-keys // 16) * 16), given.dtype)
    held[..., :keys] = given
    array = device.asarray(held)
    batch, heads, rows, _ = given.shape
    of_batch, of_head, of_row, of_key = array.strides
    seen = np.lib.stride_tricks.as_strided(
        array,
        (batch, heads, case.longest[0] if rows == 1 else rows, keys),
        (of_batch, of_head, 0 if rows == 1 else of_row, of_key),
    )
    element: Element = {1: "u8", 2: "u16", 4: "f32"}[array.itemsize]  # type: ignore[assignment]
    box = 1, 1, shape.box_rows, shape.ahead_row // array.itemsize
    encoded = TensorMap(seen, box, element).emulated().tobytes()
    ctypes.memmove(ctypes.addressof(launch.mask_map), encoded, len(encoded))
    return array
