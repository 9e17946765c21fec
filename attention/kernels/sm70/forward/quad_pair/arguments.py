"""The argument of forward_sm70.cu, and the sizes that follow from a problem."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from attention.kernels.common.family import feature_defines
from attention.kernels.common.staged import held_head_dim
from attention.kernels.launch import strided
from attention.problem import AttentionProblem
from attention.variant import Config, CudaBuild, Settled, settle

FIELDS = strided.FIELDS
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
        "outputs of 16 rows and 256 columns leave two warps a scheduler no registers for all of Q; half the "
        "columns do, and the warps of a row meet over p in shared memory",
    ),
    Settled(
        "q_spans",
        _q_spans,
        "64 registers of a thread hold 16 rows of Q up to head dim 128, or 32 to 64; beside wider ones eight "
        "warps leave 16 with every feature, and what they hold is not read again through the port, which is the bound",
    ),
    Settled("blocks", lambda _, values: 8 // values["warps"], "eight warps fill the registers of an SM"),
)


@dataclass(frozen=True)
class Shape:
    """One compiled kernel's tile: head dim as held, warps of a block, query rows of a warp, keys of a tile."""

    head_dim: int
    warps: int
    warp_rows: int
    split: int
    tile_keys: int
    q_spans: int
    p_in_registers: bool

    @property
    def tile_rows(self) -> int:
        """Query rows of one block."""
        return self.warps // self.split * self.warp_rows

    @property
    def threads(self) -> int:
        """Threads of one block."""
        return 32 * self.warps

    @cached_property
    def smem_bytes(self) -> int:
        """A tile of K and one of V in padded rows; panels of Q and p unless in registers; what warps of a row share."""
        row = 2 * self.head_dim
        k, v = row + 16, row + (0 if self.head_dim % 32 else 32)
        shared = self.head_dim // SPAN - self.q_spans
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
        held_head_dim(problem.head_dim),
        config["warps"],
        config["warp_rows"],
        config["split"],
        config["tile_keys"],
        config["q_spans"],
        bool(config["p_in_registers"]),
    )


def build_of(problem: AttentionProblem, config: Config) -> CudaBuild:
    """What config.cuh asks of NVRTC, and what a launch takes."""
    shape, config = shape_of(problem, config), settle(SETTLED, problem, config)
    defines = (
        ("HEAD_DIM", shape.head_dim),
        ("WARPS", shape.warps),
        ("ROWS_PER_WARP", shape.warp_rows),
        *((axis.upper(), config[axis]) for axis in DEFINED),
        *feature_defines(problem),
    )
    return CudaBuild(KERNEL, defines, shape.threads, shape.smem_bytes)
