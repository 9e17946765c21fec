"""The argument of forward_sm80.cu, and the sizes that follow from a problem."""

from dataclasses import dataclass
from functools import cached_property

from attention.kernels.common.family import asked_defines, feature_defines, padded_head_dim
from attention.kernels.launch.launch_struct import LSE, Member, members, of_kernel, structure
from attention.problem import AttentionProblem
from attention.variant import Config, CudaBuild

KERNEL = "attention_forward_sm80"
K_STAGES, V_STAGES = 2, 3
FREE = {"CAUSAL", "SINKS"}  # no register in the loop


FIELDS = of_kernel(
    head=(
        *members("const void*", "q k v"),
        Member("void*", "out"),
        LSE,
        *(
            member
            for name in ("q", "k", "v", "out")
            for member in members("long long", f"{name}_row {name}_head {name}_batch", "in elements, multiples of 8")
        ),
    )
)
Launch = structure(FIELDS)


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
    """The tile of one configuration.

    A warp of 32 rows reads K and V half as often as one of 16; beyond head dim 128 its outputs do not fit registers.
    """
    head_dim = padded_head_dim(problem.head_dim)
    masked = problem.mask == "bool"
    # The addresses of a mask take the registers of 16 rows.
    few = head_dim > 128 or (masked and head_dim > 64)
    warp_rows = config.get("warp_rows", 16 if few else 32)
    # 16 rows of Q, or 32 of a short head dim, fit beside outputs and scores; 16 of a long one with nothing else.
    crowded = head_dim == 256 and bool(asked_defines(problem) - FREE)
    q_in_registers = config.get("q_in_registers", int((head_dim <= 64 or warp_rows == 16) and not crowded))
    return Shape(head_dim, config["warps"], warp_rows, config["tile_keys"], bool(q_in_registers))


def build_of(problem: AttentionProblem, config: Config) -> CudaBuild:
    """What config.cuh asks of NVRTC, and what a launch takes."""
    shape = shape_of(problem, config)
    # What ALiBi and a window ask for beside slices of 32 keys fits 255 registers on some architectures only.
    crowded = shape.head_dim == 128 and problem.alibi and problem.edges.left is not None
    slice_keys = 16 if crowded or shape.head_dim in (96, 192, 256) else 32
    defines = (
        ("HEAD_DIM", shape.head_dim),
        ("WARPS", shape.warps),
        ("ROWS_PER_WARP", shape.warp_rows),
        ("TILE_KEYS", shape.tile_keys),
        ("SLICE_KEYS", min(shape.tile_keys, config.get("slice_keys", slice_keys))),
        ("BLOCKS", config.get("blocks", 8 // shape.warps)),
        ("Q_IN_REGISTERS", int(shape.q_in_registers)),
        ("AHEAD", config.get("ahead", 3 if shape.head_dim in (64, 192, 256) and shape.q_in_registers else 1)),
        ("FENCE", config.get("fence", 2 if shape.head_dim == 128 and not crowded else 1)),
        *feature_defines(problem),
    )
    return CudaBuild(KERNEL, defines, shape.threads, shape.smem_bytes)
