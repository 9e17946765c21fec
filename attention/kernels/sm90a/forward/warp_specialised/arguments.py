"""The argument of forward_sm90a.cu, and the sizes that follow from a problem."""

import math
from dataclasses import dataclass
from functools import cache, cached_property

from attention.kernels.common.family import (
    ahead_defines,
    ahead_row,
    asked_defines,
    feature_defines,
    held_head_dim,
    held_value_dim,
    lead_defines,
    padded_head_dim,
    schedule_defines,
    value_defines,
)
from attention.kernels.launch.launch_struct import LATENESS, LSE, Member, members, of_kernel, structure
from attention.kernels.sm90a.packed import GROUP_ROWS, packed, queries_of
from attention.problem import AttentionProblem
from attention.tile import RING
from attention.variant import Config, CudaBuild, Settled, settle

KERNEL = "attention_forward_sm90a"
WARP_ROWS = 16
EVERYWHERE = "it brings something to the whole kernel at every head dim (H100, the ladder of notebook 20)"
# Of pairs of blocks, of a mask that these share, and of heads that share rows; without these the words are missing, and
# other builds keep their machine code.
OF_PAIRS, OF_MASKS, OF_GROUPS = ("cluster",), ("seeded",), ("pack_gqa",)
ALONE = {"CAUSAL", "MASK", "BIAS", "BIAS32"}  # what else takes registers, value dims too, was not compiled beside them
MOST_SHARED, MOST_BOOLS_SEEDED = 128, 64  # head dims
SHARED_KEYS = "shared_keys"
KEYS_DIM, LEAST_KEYS = 256, 8192  # head dim and rows of pairs that share K and V

SETTLED = (
    Settled("overlap", lambda problem, _: 1, EVERYWHERE),
    Settled(
        "pingpong",
        lambda problem, _: 1,
        "without turns warpgroups' softmaxes may begin together and stay so: up to 20 % of a block's first tile of "
        "rows, which is all of a small call (H200, one wave of 128 queries on 2048 keys)",
    ),
    Settled("lazy", lambda problem, _: 1, EVERYWHERE),
    Settled("dynamic", lambda problem, _: 1, EVERYWHERE),
    Settled(
        SHARED_KEYS,
        lambda problem, _: int(_shares_keys(problem)),
        "two blocks share K and V: 0.8 % of the time of 16384 tokens at head dim 256, causal 2.3 (H200), where power "
        "sets the clock; at other head dims, of shorter rows or of heads that share keys at most 1 %, and up to 5 more",
        concerns=lambda problem: problem.head_dim == KEYS_DIM,
    ),
    Settled(
        "cluster",
        lambda problem, values: 2 if values[SHARED_KEYS] or _shares_mask(problem) else 1,
        "two blocks share a mask's rows: 2 to 24 % of the time at head dim 64 and up to 14 at 128 (H200, 1k to 16k "
        "tokens), nothing at 256, where products take longer; a mask of its own for each head takes no longer",
        concerns=lambda problem: problem.mask != "none",
    ),
    Settled(
        "seeded",
        lambda problem, values: _seeded(problem) if values["cluster"] > 1 and not values[SHARED_KEYS] else 0,
        "scores that begin as the mask take 5 to 18 % less time at head dim 64, and floats up to 9 at 128; bools "
        "there take up to 7 % more with two warpgroups, and with three the fastest takes as long (H200)",
        concerns=lambda problem: problem.mask != "none",
    ),
    Settled(
        "pack_gqa",
        lambda problem, values: packed(problem, values["warpgroups"]),
        "heads of a group share tiles of rows only where these are half as many then: K and V are read once for all",
        concerns=lambda problem: problem.heads_q > problem.heads_kv,
    ),
)


def may_share(problem: AttentionProblem) -> bool:
    """Whether pairs of heads may have a mask in common, which comes by TMA."""
    alike = problem.head_dim == problem.head_dim_v
    return problem.mask != "none" and problem.heads_q % 2 == 0 and alike and asked_defines(problem) <= ALONE


def _shares_mask(problem: AttentionProblem) -> bool:
    return may_share(problem) and problem.head_dim <= MOST_SHARED


def _shares_keys(problem: AttentionProblem) -> bool:
    """Whether neighbouring tiles of rows share K and V: of long rows at the largest head dim, causal or not."""
    if (problem.head_dim, problem.head_dim_v) != (KEYS_DIM, KEYS_DIM) or problem.heads_q != problem.heads_kv:
        return False
    return min(problem.seq_q, problem.seq_kv) >= LEAST_KEYS and asked_defines(problem) <= {"CAUSAL"}


def _seeded(problem: AttentionProblem) -> int:
    """0, 1, or 2 where Q is scaled by a power of two: of float16 that would lose what lies below 2^-24."""
    if problem.mask == "bool":
        return int(problem.head_dim <= MOST_BOOLS_SEEDED)
    return 2 if problem.dtype == "bfloat16" and math.frexp(problem.softmax_scale)[0] == 0.5 else 1


HEAD = (
    *members("ptx::TensorMap", "q k v"),
    Member("void*", "out"),
    LSE,
    *members("long long", "out_row out_head out_batch", "in elements, as all strides"),
    Member("int*", "counters", "{tiles taken, blocks that are done}, both 0 before and after a launch"),
)
# gridDim, read in the loop, takes a register that the producer has not.
TAIL = (Member("int", "blocks", "of the grid"),)
LAST = (
    Member("ptx::TensorMap", "mask_map", "of rows of a mask, where they come by TMA"),
    Member("int", "mask_in_tiles", "its axis of keys is tiles and keys of one (launch.py)"),
)
FIELDS = of_kernel(HEAD, tail=TAIL, last=(*LAST, *LATENESS))
Launch = structure(FIELDS)


@dataclass(frozen=True)
class Shape:
    """One compiled kernel's tile: head and value dim, keys of a tile, consumer warpgroups, stages; where Q is kept.

    `ahead_row`: bytes of shared memory a query row of what a feature reads ahead of the scores; `mask_boxes`: by TMA.
    Blocks of a `cluster` share a mask, or where it `shares_keys` K and V. Heads of a `group` share a tile's rows.
    """

    head_dim: int
    value_dim: int
    tile_keys: int
    warpgroups: int
    stages: int
    q_in_registers: bool
    ahead_row: int = 0
    mask_boxes: bool = False
    cluster: int = 1
    shares_keys: bool = False
    group: int = 1

    @property
    def held_rows(self) -> int:
        """That shared memory and products have of a tile."""
        return GROUP_ROWS * self.warpgroups

    @property
    def tile_rows(self) -> int:
        """Query rows of one tile, of all heads that share it."""
        return self.warpgroups * queries_of(self.group) * self.group

    @property
    def key_panel(self) -> int:
        """Columns of one panel of Q and K, half the swizzle's span in bytes."""
        return _panel(self.head_dim)

    @property
    def value_panel(self) -> int:
        """Columns of one panel of V."""
        return _panel(self.value_dim)

    @property
    def boxes(self) -> int:
        """Of K and V, a panel each, that are under way: longer rings brought none sooner (H200, rows that cross)."""
        return RING * (-(-self.head_dim // self.key_panel) + -(-self.value_dim // self.value_panel))

    @property
    def box_rows(self) -> int:
        """Rows of a box of a mask."""
        return WARP_ROWS if self.cluster == 1 else GROUP_ROWS // 2

    @property
    def box_keys(self) -> int:
        """Keys of a box of K or V."""
        return self.tile_keys // self.cluster if self.shares_keys else self.tile_keys

    @property
    def threads(self) -> int:
        """Consumers and the producer warpgroup."""
        return 128 * (self.warpgroups + 1)

    @cached_property
    def smem_bytes(self) -> int:
        """Q, rings of K and V, rows of a feature, mbarriers (of V uncleared and masks too), two slots of 16 bytes.

        Of a pair, a number beside its barriers, and room for those of a mask, which where it shares keys is empty.
        """
        key_row, value_row = (2 * -(-dim // _panel(dim)) * _panel(dim) for dim in (self.head_dim, self.value_dim))
        keys = self.stages * self.tile_keys
        held = (self.held_rows + keys) * key_row + keys * value_row + self.held_rows * self.ahead_row
        of_masks = 2 * self.warpgroups + 3 if self.cluster > 1 else 4 * self.warpgroups if self.mask_boxes else 0
        return held + 8 * (2 * self.warpgroups + 5 * self.stages + 4 + of_masks) + 16 * 2


def _panel(dim: int) -> int:
    """Columns of a panel (config.cuh)."""
    return 32 if dim <= 32 or dim % 64 == 32 else 64


def shape_of(problem: AttentionProblem, config: Config) -> Shape:
    """The tile of one configuration."""
    ahead = ahead_row(problem, config["tile_keys"])
    boxes = ahead > 0 and not problem.ranges
    settled = settle(SETTLED, problem, config)
    return _shape(held_head_dim(problem.head_dim), held_value_dim(problem), settled, ahead, boxes)


@cache
def _shape(head_dim: int, value_dim: int, config: Config, ahead: int, boxes: bool) -> Shape:
    sizes = config["tile_keys"], config["warpgroups"], config["stages"]
    held, group = bool(config["q_in_registers"]), max(1, config["pack_gqa"])
    return Shape(head_dim, value_dim, *sizes, held, ahead, boxes, config["cluster"], bool(config[SHARED_KEYS]), group)


def tuned_head_dim(problem: AttentionProblem, config: Config) -> int:
    """The head dim that the kernel is tuned at whose build takes as many registers, or more.

    Outputs take them, of the value dim, and where it is held Q, of the head dim.
    """
    beside = problem.head_dim if config["q_in_registers"] else 0
    return padded_head_dim(max(problem.head_dim_v, beside))


def build_of(problem: AttentionProblem, config: Config) -> CudaBuild:
    """What config.cuh asks of NVRTC, and what a launch takes."""
    shape, config = shape_of(problem, config), settle(SETTLED, problem, config)
    missing = {
        *(OF_PAIRS if shape.cluster == 1 else ()),
        *(OF_MASKS if shape.cluster == 1 or shape.shares_keys else ()),
        *(OF_GROUPS if shape.group == 1 else ()),
        *(() if shape.shares_keys else (SHARED_KEYS,)),
    }
    defines = (
        ("HEAD_DIM", shape.head_dim),
        *value_defines(problem),
        *lead_defines(problem),
        *((axis.upper(), config[axis]) for axis in ("tile_keys", "warpgroups", "stages", "q_in_registers")),
        *((each.name.upper(), config[each.name]) for each in SETTLED if each.name not in missing),
        *feature_defines(problem),
        *ahead_defines(problem, shape.tile_keys),
        *schedule_defines(problem),
    )
    return CudaBuild(KERNEL, defines, shape.threads, shape.smem_bytes, shape.cluster)
