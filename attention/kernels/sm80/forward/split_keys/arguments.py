"""The argument of forward_sm80.cu, and the sizes that follow from a problem."""

from collections.abc import Mapping
from dataclasses import dataclass

from attention.kernels.common.family import dealt, feature_defines, schedule_defines, value_defines
from attention.kernels.launch import strided
from attention.kernels.sm80.forward.software_pipelined import arguments as whole
from attention.problem import AttentionProblem
from attention.variant import Config, CudaBuild, Settled, settle

FIELDS = strided.FEW_FIELDS
KERNEL = "attention_forward_sm80_split"
STATE_FLOATS = 4  # of a row: its offset and sum, in 16 bytes


def _packed(problem: AttentionProblem, _: Mapping[str, int]) -> int:
    return int(not (problem.alibi or problem.mask != "none" or dealt(problem)))


def _q_in_registers(problem: AttentionProblem, values: Mapping[str, int]) -> int:
    return 0 if max(problem.head_dim, problem.head_dim_v) > 192 else whole.held_in_registers(problem, values)


SETTLED = (
    Settled(
        "pack_gqa",
        _packed,
        "heads of a group read K and V once together; ALiBi and masks are of one head, and dealt tiles of one sequence",
    ),
    Settled("warp_rows", lambda problem, _: 16, "few rows fill no more"),
    Settled("idle_warps", lambda problem, _: 1, "warps without rows leave shared memory to those that have some"),
    Settled(
        "q_in_registers",
        _q_in_registers,
        "16 rows of Q fit beside outputs of up to 192 columns, and of 256 spilled 4 to 24 bytes (float16)",
    ),
    *(each for each in whole.SETTLED if each.name not in ("warp_rows", "q_in_registers")),
)


@dataclass(frozen=True)
class Shape(whole.Shape):
    """A tile, the query heads that share it, the blocks that share its keys, and its rows that some sequence uses."""

    group: int
    key_splits: int
    part_rows: int

    @property
    def partial_floats(self) -> int:
        """What one block leaves at most: of each row its outputs and its softmax."""
        return self.part_rows * (self.value_dim + STATE_FLOATS)


def shape_of(problem: AttentionProblem, config: Config) -> Shape:
    """The tile of one configuration."""
    settled = settle(SETTLED, problem, config)
    tile = whole.shape_of(problem, settled)
    group = problem.heads_q // problem.heads_kv if settled["pack_gqa"] else 1
    used = min(tile.tile_rows, problem.seq_q * group)
    return Shape(
        *(tile.head_dim, tile.value_dim, tile.warps, tile.warp_rows, tile.tile_keys, tile.q_in_registers),
        *(group, settled["key_splits"], used),
    )


def build_of(problem: AttentionProblem, config: Config) -> CudaBuild:
    """What config.cuh asks of NVRTC, and what a launch takes."""
    shape, settled = shape_of(problem, config), settle(SETTLED, problem, config)
    defines = (
        ("HEAD_DIM", shape.head_dim),
        *value_defines(problem),
        ("WARPS", shape.warps),
        ("ROWS_PER_WARP", shape.warp_rows),
        *((axis.upper(), settled[axis]) for axis in (*whole.DEFINED, "pack_gqa", "idle_warps")),
        ("KEY_PARTS", 1),
        *feature_defines(problem),
        *schedule_defines(problem),
    )
    return CudaBuild(KERNEL, defines, shape.threads, shape.smem_bytes)
