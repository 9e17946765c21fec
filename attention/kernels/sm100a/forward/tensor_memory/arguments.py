"""The argument of forward_sm100a.cu, and the sizes that follow from a problem."""

from dataclasses import dataclass
from functools import cache, cached_property

from attention.kernels.common.family import (
    feature_defines,
    held_value_dim,
    padded_head_dim,
    schedule_defines,
    value_defines,
)
from attention.kernels.launch.launch_struct import LSE, Member, members, of_kernel, structure
from attention.problem import AttentionProblem
from attention.variant import Config, CudaBuild

KERNEL = "attention_forward_sm100a"
ROWS = 128  # of a query tile: the lanes of tensor memory
COLUMNS = 512  # of tensor memory
SCORE_COLUMNS = 128  # of each of two buffers
PIECE_BYTES = ROWS * (2 * 32 + 16)
MOST_STAGES = 8
VALUE_STEP = 32  # columns of one piece of outputs, and of the narrowest panel of V
SMEM_BYTES = 227 << 10  # that a block may have (CUDA Programming Guide)

FIELDS = of_kernel(
    head=(
        *members("ptx::TensorMap", "q k v"),
        Member("void*", "out"),
        LSE,
        *members("long long", "out_row out_head out_batch", "in elements, as all strides"),
        Member("int*", "counters", "{tiles taken, blocks that are done}, both 0 before and after a launch"),
    ),
    scales=(
        Member("float", "slack", "8 / scale_log2: may a score exceed its row's maximum before outputs are rescaled"),
    ),
    tail=(Member("int", "blocks", "of the grid"),),
)
Launch = structure(FIELDS)


@dataclass(frozen=True)
class Shape:
    """One compiled kernel's tile: head and value dim as held, keys of a tile, of 32 exponentials the polynomials.

    `cta_group` blocks share each tile of K and V: a tile of rows is what they do together.
    """

    head_dim: int
    value_dim: int
    tile_keys: int
    polynomial: int
    dynamic: bool
    cta_group: int

    @property
    def query_tiles(self) -> int:
        """Tiles of 128 rows at a time: two, where tensor memory holds their outputs beside two tiles of scores."""
        return 2 if 2 * (SCORE_COLUMNS + self.value_dim) <= COLUMNS else 1

    @property
    def block_rows(self) -> int:
        """Query rows that one block has of a tile."""
        return ROWS * self.query_tiles

    @property
    def tile_rows(self) -> int:
        """Query rows of one tile."""
        return self.cta_group * self.block_rows

    @property
    def held_keys(self) -> int:
        """Rows of K that one block holds of a tile."""
        return self.tile_keys // self.cta_group

    @property
    def held_values(self) -> int:
        """Columns of V that one block holds."""
        return self.value_dim // self.cta_group

    @property
    def key_panel(self) -> int:
        """Columns of one panel of Q and K."""
        return panel_width(self.head_dim)

    @property
    def value_panel(self) -> int:
        """Columns of one panel of V."""
        return panel_width(self.held_values)

    @property
    def threads(self) -> int:
        """A softmax warpgroup for each query tile, the correction's, and four warps."""
        return 128 * self.query_tiles + 256

    @cached_property
    def stages(self) -> int:
        """Tiles of K and V in flight: as many as shared memory holds."""
        return min(MOST_STAGES, (SMEM_BYTES - self._bytes(0)) // (self._bytes(1) - self._bytes(0)))

    @cached_property
    def smem_bytes(self) -> int:
        """Q, the ring of K and V, two pieces of outputs, factors, sums and offsets, tiles, mbarriers, an address."""
        return self._bytes(self.stages)

    def _bytes(self, stages: int) -> int:
        stage = max(self.held_keys * self.head_dim, self.tile_keys * self.held_values)
        elements = self.block_rows * self.head_dim + stages * stage
        words = 2 * ROWS + 2 * self.block_rows
        barriers = 5 * self.query_tiles + 3 * stages + 7 * 2
        return 2 * elements + 2 * PIECE_BYTES + 4 * words + 2 * 16 + 8 * barriers + 8


def shape_of(problem: AttentionProblem, config: Config) -> Shape:
    """The tile of one configuration."""
    value_dim = -(-held_value_dim(problem, padded_head_dim) // VALUE_STEP) * VALUE_STEP
    return _shape(padded_head_dim(problem.head_dim), value_dim, config)


def panel_width(width: int) -> int:
    """Columns of one panel of such rows: the swizzle's span, 128 bytes where it divides the row, else 64."""
    return 32 if width % 64 else 64


@cache
def _shape(head_dim: int, value_dim: int, config: Config) -> Shape:
    return Shape(
        *(head_dim, value_dim, config["tile_keys"], config["polynomial"]), bool(config["dynamic"]), config["cta_group"]
    )


def pair_defines(shape: Shape) -> tuple[tuple[str, int], ...]:
    """CTA_GROUP of a pair: other builds have no such word, and keep their machine code."""
    return () if shape.cta_group == 1 else (("CTA_GROUP", shape.cta_group),)


def build_of(problem: AttentionProblem, config: Config) -> CudaBuild:
    """What config.cuh asks of NVRTC, and what a launch takes."""
    shape = shape_of(problem, config)
    defines = (
        ("HEAD_DIM", shape.head_dim),
        *value_defines(problem),
        ("TILE_KEYS", shape.tile_keys),
        ("QUERY_TILES", shape.query_tiles),
        ("STAGES", shape.stages),
        ("POLYNOMIAL", shape.polynomial),
        *pair_defines(shape),
        ("DYNAMIC", int(shape.dynamic)),
        *feature_defines(problem),
        *schedule_defines(problem),
    )
    return CudaBuild(KERNEL, defines, shape.threads, shape.smem_bytes, shape.cta_group)
