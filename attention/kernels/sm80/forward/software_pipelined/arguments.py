"""The argument of forward_sm80.cu, and the sizes that follow from a problem."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache

from attention.kernels.common.family import (
    asked_defines,
    feature_defines,
    held_head_dim,
    held_value_dim,
    lead_defines,
    padded_head_dim,
    schedule_defines,
    value_defines,
)
from attention.kernels.launch import strided
from attention.problem import AttentionProblem
from attention.variant import Config, CudaBuild, Settled, settle

FIELDS = strided.FIELDS
KERNEL = "attention_forward_sm80"
K_STAGES, V_STAGES = 2, 3
DEFINED = ("tile_keys", "slice_keys", "blocks", "q_in_registers", "ahead", "fence")
FREE = {"CAUSAL", "SINKS"}  # no register in the loop


def _warp_rows(problem: AttentionProblem, _: Mapping[str, int]) -> int:
    return 16 if problem.head_dim_v > (64 if problem.mask != "none" else 128) else 32


def tuned_head_dim(problem: AttentionProblem) -> int:
    """The head dim that the kernel is tuned at whose build takes as many registers, or more.

    Outputs take them, of the value dim; and of 16 rows, or of short heads, Q, of the head dim.
    """
    beside = problem.head_dim if _warp_rows(problem, {}) == 16 else 0
    return padded_head_dim(max(problem.head_dim_v, beside))


def _crowded(problem: AttentionProblem) -> bool:
    """What ALiBi and a window ask for beside slices of 32 keys fits 255 registers on some architectures only."""
    return tuned_head_dim(problem) == 128 and problem.alibi and problem.edges.left is not None


def held_in_registers(problem: AttentionProblem, values: Mapping[str, int]) -> int:
    alone = max(problem.head_dim, problem.head_dim_v) <= 192 or not asked_defines(problem) - FREE
    short = max(problem.head_dim, problem.head_dim_v) <= 64
    return int((short or values["warp_rows"] == 16) and alone)


def slice_keys(problem: AttentionProblem, values: Mapping[str, int]) -> int:
    """Keys whose scores a warp holds at a time."""
    few = _crowded(problem) or tuned_head_dim(problem) in (96, 192, 256)
    return min(values["tile_keys"], 16 if few else 32)


def _ahead(problem: AttentionProblem, values: Mapping[str, int]) -> int:
    """The next slice's first fragments are fetched under this one's last where the ring is a part of a slice."""
    blocks = values["slice_keys"] // 16
    of_k, of_v = (blocks * dim // 16 for dim in (held_head_dim(problem.head_dim), held_value_dim(problem)))
    further = tuned_head_dim(problem) in (64, 192, 256) and values["q_in_registers"]
    return 3 if further and min(of_k, of_v) >= 3 and (of_k + of_v) % 4 == 0 else 1


def span_bytes(held_dim: int) -> int:
    """Of a row so many bytes are copied by threads side by side: the span of its swizzle (config.cuh, kGroup)."""
    return 32 if held_dim % 32 else 64 if held_dim % 64 else 128


SETTLED = (
    Settled(
        "warp_rows",
        _warp_rows,
        "32 read K and V half as often as 16; beyond value dim 128 their outputs do not fit registers, and the "
        "addresses of a mask take the registers of 16 rows",
    ),
    Settled(
        "q_in_registers",
        held_in_registers,
        "16 rows of Q, or 32 of a short head dim, fit beside outputs and scores; 16 of a long one with nothing else",
    ),
    Settled("slice_keys", slice_keys, "registers hold the scores of no more"),
    Settled("blocks", lambda _, values: 8 // values["warps"], "eight warps fill the registers of an SM"),
    Settled("ahead", _ahead, "fetching further ahead pays where registers are left (H100, the ladder of notebook 22)"),
    Settled(
        "fence",
        lambda problem, _: 2 if tuned_head_dim(problem) == 128 and not _crowded(problem) else 1,
        "it moves ptxas's order, and was fastest at this head dim (H100, the ladder of notebook 22)",
    ),
)


@dataclass(frozen=True)
class Shape:
    """One compiled kernel's tile: head and value dim as held, warps of a block, query rows of a warp, its keys."""

    head_dim: int
    value_dim: int
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
        q, k, v = self.tile_rows * self.head_dim, self.tile_keys * self.head_dim, self.tile_keys * self.value_dim
        passes = self.q_in_registers and q <= (V_STAGES - 1) * v + k
        return 2 * (K_STAGES * k + V_STAGES * v + (0 if passes else q)) + 4 * (self.warps + 1)


@lru_cache(maxsize=1024)
def shape_of(problem: AttentionProblem, config: Config) -> Shape:
    """The tile of one configuration."""
    config = settle(SETTLED, problem, config)
    head_dim, value_dim = held_head_dim(problem.head_dim), held_value_dim(problem)
    tile = config["warps"], config["warp_rows"], config["tile_keys"]
    return Shape(head_dim, value_dim, *tile, bool(config["q_in_registers"]))


def build_of(problem: AttentionProblem, config: Config) -> CudaBuild:
    """What config.cuh asks of NVRTC, and what a launch takes."""
    shape, config = shape_of(problem, config), settle(SETTLED, problem, config)
    defines = (
        ("HEAD_DIM", shape.head_dim),
        *value_defines(problem),
        *lead_defines(problem),
        ("WARPS", shape.warps),
        ("ROWS_PER_WARP", shape.warp_rows),
        *((axis.upper(), config[axis]) for axis in DEFINED),
        *feature_defines(problem),
        *schedule_defines(problem),
    )
    return CudaBuild(KERNEL, defines, shape.threads, shape.smem_bytes)
