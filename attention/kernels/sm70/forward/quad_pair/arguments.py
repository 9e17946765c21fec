"""The argument of forward_sm70.cu, and the sizes that follow from a problem."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from attention.kernels.common import staged
from attention.kernels.common.family import held_head_dim
from attention.kernels.launch import strided
from attention.problem import AttentionProblem
from attention.variant import Config, CudaBuild, Settled, settle

FIELDS = strided.SPLIT_FIELDS
KERNEL = "attention_forward_sm70"
DEFINED = ("split", "tile_keys", "blocks", "q_spans", "p_in_registers")
SPAN = 8  # columns of 16 bytes
SOME_SPANS = 4  # of Q in 16 registers: six are 0.8 % faster by the static estimate, and eight spill with a feature
HALF_GAP = 32  # bytes behind eight rows of an operand's panel


def _q_spans(problem: AttentionProblem, values: Mapping[str, int]) -> int:
    held = held_head_dim(problem.head_dim)
    if held * values["warp_rows"] <= 128 * 16 or (values["split"] == 2 and values["warp_rows"] == 16):
        return held // SPAN
    return SOME_SPANS if (values["warps"], values["warp_rows"]) == (8, 16) else 0


def _split(problem: AttentionProblem, values: Mapping[str, int]) -> int:
    several = values["warps"] == 8 and not values["p_in_registers"]
    return 2 if several and problem.head_dim > 128 and held_head_dim(problem.head_dim) % 64 == 0 else 1


SETTLED = (
    Settled(
        "split",
        _split,
        "outputs of 16 rows and 256 columns leave two warps a scheduler no registers for all of Q; half the columns "
        "do, and the warps of a row meet over p in shared memory",
    ),
    Settled(
        "q_spans",
        _q_spans,
        "64 registers of a thread hold 16 rows of Q up to head dim 128, or 32 to 64; beside wider ones eight warps "
        "leave 16 with every feature, and what they hold is not read again from shared memory, whose port is the bound",
    ),
    Settled("blocks", lambda _, values: 8 // values["warps"], "eight warps fill the registers of an SM"),
)


@dataclass(frozen=True, kw_only=True)
class Shape(staged.Shape):
    """A tile, how many warps share their rows, and what stays in registers: so many spans of Q, and p or not."""

    split: int
    q_spans: int
    p_in_registers: bool

    @property
    def tile_rows(self) -> int:
        """Query rows of one block."""
        return self.warps // self.split * self.warp_rows

    @property
    def shared_spans(self) -> int:
        """Of Q, those that each tile reads again."""
        return self.head_dim // SPAN - self.q_spans

    @cached_property
    def smem_bytes(self) -> int:
        """A tile of K and one of V in padded rows; panels of Q and p unless in registers; what warps of a row share."""
        row = 2 * self.head_dim
        k, v = row + 16, row + (0 if self.head_dim % 32 else 32)
        shared = self.shared_spans
        q = self._panels(16 * (shared + 1 + shared % 2)) if shared else 0
        p = 0 if self.p_in_registers else self._panels(2 * self.tile_keys + 16)
        beside = 0 if self.split == 1 else 4 * self.split * self.tile_rows
        return self.tile_keys * (k + v) + q + p + beside

    def _panels(self, pitch: int) -> int:
        return self.tile_rows // 8 * (8 * pitch + HALF_GAP)


def shape_of(problem: AttentionProblem, config: Config) -> Shape:
    """The tile of one configuration."""
    config = settle(SETTLED, problem, config)
    return Shape(
        head_dim=held_head_dim(problem.head_dim),
        warps=config["warps"],
        warp_rows=config["warp_rows"],
        tile_keys=config["tile_keys"],
        key_splits=config["key_splits"],
        split=config["split"],
        q_spans=config["q_spans"],
        p_in_registers=bool(config["p_in_registers"]),
    )


def build_of(problem: AttentionProblem, config: Config) -> CudaBuild:
    """What config.cuh asks of NVRTC, and what a launch takes."""
    return staged.build(KERNEL, problem, shape_of(problem, config), settle(SETTLED, problem, config), DEFINED)
