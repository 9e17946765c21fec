"""The argument of forward_sm75.cu, and the sizes that follow from a problem."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from attention.kernels.common.family import feature_defines
from attention.kernels.common.staged import held_head_dim
from attention.kernels.launch import strided
from attention.problem import AttentionProblem
from attention.variant import Config, CudaBuild, Settled, settle

FIELDS = strided.SPLIT_FIELDS
KERNEL = "attention_forward_sm75"
DEFINED = ("tile_keys", "blocks", "q_in_registers")


def _q_in_registers(problem: AttentionProblem, values: Mapping[str, int]) -> int:
    return int(held_head_dim(problem.head_dim) * values["warp_rows"] <= 128 * 16)


SETTLED = (
    Settled(
        "q_in_registers",
        _q_in_registers,
        "32 registers of a thread hold 16 rows up to head dim 128, or 32 to 64; outputs leave no room for more",
    ),
    Settled("blocks", lambda _, values: 8 // values["warps"], "eight warps fill the registers of an SM"),
)


@dataclass(frozen=True)
class Shape:
    """One tile: head dim as held, warps of a block, query rows of a warp, keys of a tile, blocks of a row's keys."""

    head_dim: int
    warps: int
    warp_rows: int
    tile_keys: int
    q_in_registers: bool
    key_splits: int

    @property
    def tile_rows(self) -> int:
        """Query rows of one block."""
        return self.warps * self.warp_rows

    @property
    def threads(self) -> int:
        """Threads of one block."""
        return 32 * self.warps

    @cached_property
    def smem_bytes(self) -> int:
        """A tile of K and one of V in padded rows, and Q unless in registers."""
        rows = 2 * self.tile_keys + (0 if self.q_in_registers else self.tile_rows)
        return rows * (2 * self.head_dim + 16)


def shape_of(problem: AttentionProblem, config: Config) -> Shape:
    """The tile of one configuration."""
    config = settle(SETTLED, problem, config)
    return Shape(
        held_head_dim(problem.head_dim),
        config["warps"],
        config["warp_rows"],
        config["tile_keys"],
        bool(config["q_in_registers"]),
        config["key_splits"],
    )


def build_of(problem: AttentionProblem, config: Config) -> CudaBuild:
    """What config.cuh asks of NVRTC, and what a launch takes."""
    shape, config = shape_of(problem, config), settle(SETTLED, problem, config)
    defines = (
        ("HEAD_DIM", shape.head_dim),
        ("WARPS", shape.warps),
        ("ROWS_PER_WARP", shape.warp_rows),
        *((axis.upper(), config[axis]) for axis in DEFINED),
        ("KEY_PARTS", int(shape.key_splits > 1)),
        *feature_defines(problem),
    )
    return CudaBuild(KERNEL, defines, shape.threads, shape.smem_bytes)
