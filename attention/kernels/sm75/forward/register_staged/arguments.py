"""The argument of forward_sm75.cu, and the sizes that follow from a problem."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from attention.kernels.common import staged
from attention.kernels.common.family import held_head_dim
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


@dataclass(frozen=True, kw_only=True)
class Shape(staged.Shape):
    """A tile, and whether its Q stays in registers."""

    q_in_registers: bool

    @cached_property
    def smem_bytes(self) -> int:
        """A tile of K and one of V in padded rows, and Q unless in registers."""
        rows = 2 * self.tile_keys + (0 if self.q_in_registers else self.tile_rows)
        return rows * (2 * self.head_dim + 16)


def shape_of(problem: AttentionProblem, config: Config) -> Shape:
    """The tile of one configuration."""
    config = settle(SETTLED, problem, config)
    return Shape(
        head_dim=held_head_dim(problem.head_dim),
        warps=config["warps"],
        warp_rows=config["warp_rows"],
        tile_keys=config["tile_keys"],
        key_splits=config["key_splits"],
        q_in_registers=bool(config["q_in_registers"]),
    )


def build_of(problem: AttentionProblem, config: Config) -> CudaBuild:
    """What config.cuh asks of NVRTC, and what a launch takes."""
    return staged.build(KERNEL, problem, shape_of(problem, config), settle(SETTLED, problem, config), DEFINED)
