"""The argument of forward_sm80.cu, and the sizes that follow from a problem."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from attention.kernels.common.family import (
    dealt,
    feature_defines,
    held_head_dim,
    lead_defines,
    schedule_defines,
    tiles_of,
    value_defines,
)
from attention.kernels.launch import strided
from attention.kernels.sm80.forward.software_pipelined import arguments as whole
from attention.kernels.sm80.forward.software_pipelined.arguments import tuned_head_dim
from attention.problem import AttentionProblem
from attention.variant import Config, CudaBuild, Settled, settle

FIELDS = strided.FEW_FIELDS
KERNEL = "attention_forward_sm80_split"
WARP_ROWS, LEAST_SLICE = 16, 16  # the M and the K of a product
OWN = ("warp_rows", "q_in_registers", "slice_keys", "blocks")  # settled otherwise than for many rows
FEW_STAGES, MOST_STAGES = 2, 3  # tiles of keys in shared memory, all but one of them on their way
MOST_IN_STEP = 132  # blocks: the SMs of an H100 and H200
LINE_NUMBERS = 64
STATE_FLOATS = 4  # of a row: its offset and sum, in 16 bytes
JOINED_BESIDE = 8  # words beside a warp's outputs of a row, in shared memory (key_loop.cuh)


def _packed(problem: AttentionProblem, _: Mapping[str, int]) -> int:
    return int(not (problem.alibi or problem.mask != "none" or dealt(problem)))


def _key_warps(problem: AttentionProblem, values: Mapping[str, int]) -> int:
    """Of so many queries, with those of the group's heads, two warps in four or three would have no rows."""
    group = problem.heads_q // problem.heads_kv if values["pack_gqa"] else 1
    rows, warps = problem.seq_q * group, values["warps"]
    idle = warps // -(-rows // WARP_ROWS) if rows <= warps * WARP_ROWS else 1
    return max(1, min(1 << idle.bit_length() - 1, values["tile_keys"] // LEAST_SLICE))


def _key_stages(problem: AttentionProblem, values: Mapping[str, int]) -> int:
    """0 where warps have rows of their own. Two of 128 keys at head dim 64, where a third takes a block from an SM.

    At head dims 80 and 96 it does too, and by the model two would take up to 7 % longer there.
    """
    if values["key_warps"] == 1:
        return 0
    return FEW_STAGES if values["tile_keys"] == 128 and tuned_head_dim(problem) == 64 else MOST_STAGES


def _blocks(problem: AttentionProblem, values: Mapping[str, int]) -> int:
    """Where four warps hold narrow slices a third fits registers up to head dim 96, and a fourth below 64.

    Head dim 40 took 130 registers of a thread where three were asked for, and 2 to 18 % more time than four do (H100).
    """
    if values["key_warps"] == 1 or tuned_head_dim(problem) > 96:
        return 8 // values["warps"]
    return 4 if max(problem.head_dim, problem.head_dim_v) <= 48 else 3


def _slice_keys(problem: AttentionProblem, values: Mapping[str, int]) -> int:
    return min(whole.slice_keys(problem, values), values["tile_keys"] // values["key_warps"])


def _q_in_registers(problem: AttentionProblem, values: Mapping[str, int]) -> int:
    return 0 if max(problem.head_dim, problem.head_dim_v) > 192 else whole.held_in_registers(problem, values)


def _ends_inside(problem: AttentionProblem) -> bool:
    """Whether rows of K or V, as shared memory holds them, are no whole lines."""
    return any(held_head_dim(dim) % LINE_NUMBERS for dim in (problem.head_dim, problem.head_dim_v))


def _whole_lines(problem: AttentionProblem, values: Mapping[str, int]) -> int:
    if values["key_warps"] == 1 or not _ends_inside(problem):
        return 0
    group = problem.heads_q // problem.heads_kv if values["pack_gqa"] else 1
    tiles = tiles_of(problem, values["warps"] // values["key_warps"] * WARP_ROWS, group)
    return int(tiles * values["key_splits"] <= MOST_IN_STEP)


SETTLED = (
    Settled(
        "pack_gqa",
        _packed,
        "heads of a group read K and V once together; ALiBi and masks are of one head, and dealt tiles of one sequence",
    ),
    Settled("warp_rows", lambda problem, _: WARP_ROWS, "few rows fill no more"),
    Settled("key_warps", _key_warps, "warps that rows would not fill share them, each with keys of its own"),
    Settled("idle_warps", lambda problem, _: 1, "warps without rows leave shared memory to those that have some"),
    Settled(
        "q_in_registers",
        _q_in_registers,
        "16 rows of Q fit beside outputs of up to 192 columns, and of 256 spilled 4 to 24 bytes (float16)",
    ),
    Settled(
        "key_stages",
        _key_stages,
        "all tiles but one are on their way; older timings, which name no stages, were built by this",
    ),
    Settled(
        "whole_lines",
        _whole_lines,
        "where each block has an SM a line that two heads share comes once, in up to 5 % less time than its parts; "
        "blocks beside each other drift apart, and bring it again: 3 to 12 % more (H200)",
        concerns=_ends_inside,
    ),
    Settled("slice_keys", _slice_keys, "registers hold the scores of no more, and a warp has its part of a tile"),
    Settled("blocks", _blocks, "registers are kept for so many on an SM"),
    *(each for each in whole.SETTLED if each.name not in OWN),
)


@dataclass(frozen=True)
class Shape(whole.Shape):
    """A tile, the query heads that share it, the blocks that share its keys, and its rows that some sequence uses."""

    group: int
    key_splits: int
    part_rows: int
    key_warps: int
    key_stages: int

    @property
    def tile_rows(self) -> int:
        """Query rows of one block, whose warps may share them."""
        return self.warps // self.key_warps * self.warp_rows

    @cached_property
    def smem_bytes(self) -> int:
        """Where warps share rows: the ring, and Q behind it, or what they bring together there; votes, and a word."""
        if not self.key_stages:
            return super().smem_bytes
        both = self.head_dim + self.value_dim
        numbers = self.key_stages * self.tile_keys * both + self.tile_rows * self.head_dim
        joined = 4 * self.warps * self.warp_rows * (self.value_dim + JOINED_BESIDE)
        return max(2 * numbers, joined) + 4 * (self.warps + 1)

    @property
    def partial_floats(self) -> int:
        """What one block leaves at most: of each row its outputs and its softmax."""
        return self.part_rows * (self.value_dim + STATE_FLOATS)


def shape_of(problem: AttentionProblem, config: Config) -> Shape:
    """The tile of one configuration."""
    settled = settle(SETTLED, problem, config)
    tile = whole.shape_of(problem, settled)
    group = problem.heads_q // problem.heads_kv if settled["pack_gqa"] else 1
    key_warps, key_stages = settled["key_warps"], _key_stages(problem, dict(settled.values))
    if key_stages:
        # A choice may be of another problem of its class, whose warps have rows of their own.
        key_stages = max(key_stages, settled["key_stages"])
    used = min(tile.tile_rows // key_warps, problem.seq_q * group)
    return Shape(
        *(tile.head_dim, tile.value_dim, tile.warps, tile.warp_rows, tile.tile_keys, tile.q_in_registers),
        *(group, settled["key_splits"], used, key_warps, key_stages),
    )


def build_of(problem: AttentionProblem, config: Config) -> CudaBuild:
    """What config.cuh asks of NVRTC, and what a launch takes."""
    shape, settled = shape_of(problem, config), settle(SETTLED, problem, config)
    defines = (
        ("HEAD_DIM", shape.head_dim),
        *value_defines(problem),
        *lead_defines(problem),
        ("WARPS", shape.warps),
        ("ROWS_PER_WARP", shape.warp_rows),
        *((axis.upper(), settled[axis]) for axis in (*whole.DEFINED, "pack_gqa", "idle_warps", "key_warps")),
        ("KEY_STAGES", shape.key_stages),
        *((("WHOLE_LINES", 1),) if settled["whole_lines"] else ()),
        ("KEY_PARTS", 1),
        *feature_defines(problem),
        *schedule_defines(problem),
    )
    return CudaBuild(KERNEL, defines, shape.threads, shape.smem_bytes)
