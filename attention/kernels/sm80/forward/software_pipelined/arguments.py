"""The argument of forward_sm80.cu, and the sizes that follow from a problem."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from attention.kernels.common.family import asked_defines, feature_defines, padded_head_dim, schedule_defines
from attention.kernels.launch import strided
from attention.problem import AttentionProblem
from attention.variant import Config, CudaBuild, Settled, settle

FIELDS = strided.FIELDS
KERNEL = "attention_forward_sm80"
K_STAGES, V_STAGES = 2, 3
DEFINED = ("tile_keys", "slice_keys", "blocks", "q_in_registers", "ahead", "fence")
FREE = {"CAUSAL", "SINKS"}  # no register in the loop


def _crowded(problem: AttentionProblem) -> bool:
    """What ALiBi and a window ask for beside slices of 32 keys fits 255 registers on some architectures only."""
    return padded_head_dim(problem.head_dim) == 128 and problem.alibi and problem.edges.left is not None


def _q_in_registers(problem: AttentionProblem, values: Mapping[str, int]) -> int:
    alone = problem.head_dim <= 192 or not asked_defines(problem) - FREE
    return int((problem.head_dim <= 64 or values["warp_rows"] == 16) and alone)


def _slice_keys(problem: AttentionProblem, values: Mapping[str, int]) -> int:
    few = _crowded(problem) or padded_head_dim(problem.head_dim) in (96, 192, 256)
    return min(values["tile_keys"], 16 if few else 32)


SETTLED = (
    Settled(
        "warp_rows",
        lambda problem, _: 16 if problem.head_dim > (64 if problem.mask != "none" else 128) else 32,
        "32 read K and V half as often as 16; beyond head dim 128 their outputs do not fit registers, and the "
        "addresses of a mask take the registers of 16 rows",
    ),
    Settled(
        "q_in_registers",
        _q_in_registers,
        "16 rows of Q, or 32 of a short head dim, fit beside outputs and scores; 16 of a long one with nothing else",
    ),
    Settled("slice_keys", _slice_keys, "registers hold the scores of no more"),
    Settled("blocks", lambda _, values: 8 // values["warps"], "eight warps fill the registers of an SM"),
    Settled(
        "ahead",
        lambda problem, values: (
            3 if padded_head_dim(problem.head_dim) in (64, 192, 256) and values["q_in_registers"] else 1
        ),
        "fetching further ahead pays where registers are left (H100, the ladder of notebook 22)",
    ),
    Settled(
        "fence",
        lambda problem, _: 2 if padded_head_dim(problem.head_dim) == 128 and not _crowded(problem) else 1,
        "it moves ptxas's order, and was fastest at this head dim (H100, the ladder of notebook 22)",
    ),
)


@dataclass(frozen=True)
class Shape:
    """One compiled kernel's tile: head dim as padded, warps of a block, query rows of a warp, keys of a tile."""

    head_dim: int
    warps: int
    warp_rows: int
    tile_keys: int
    q_in_registers: bool

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
        """The rings of K and V; Q beside them where it stays, or where it is too large to pass through them; votes."""
        passes = self.q_in_registers and self.tile_rows <= 3 * self.tile_keys
        rows = (K_STAGES + V_STAGES) * self.tile_keys + (0 if passes else self.tile_rows)
        return rows * self.head_dim * 2 + 4 * (self.warps + 1)


def shape_of(problem: AttentionProblem, config: Config) -> Shape:
    """The tile of one configuration."""
    config = settle(SETTLED, problem, config)
    head_dim, held = padded_head_dim(problem.head_dim), bool(config["q_in_registers"])
    return Shape(head_dim, config["warps"], config["warp_rows"], config["tile_keys"], held)


def build_of(problem: AttentionProblem, config: Config) -> CudaBuild:
    """What config.cuh asks of NVRTC, and what a launch takes."""
    shape, config = shape_of(problem, config), settle(SETTLED, problem, config)
    defines = (
        ("HEAD_DIM", shape.head_dim),
        ("WARPS", shape.warps),
        ("ROWS_PER_WARP", shape.warp_rows),
        *((axis.upper(), config[axis]) for axis in DEFINED),
        *feature_defines(problem),
        *schedule_defines(problem),
    )
    return CudaBuild(KERNEL, defines, shape.threads, shape.smem_bytes)
