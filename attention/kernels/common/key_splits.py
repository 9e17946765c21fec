"""Keys of a tile of rows that several blocks share (key_splits.cuh): where that is of use, and what it takes.

No torch here.
"""

from attention.kernels.common.family import tiles_of
from attention.kernels.common.staged import Shape
from attention.problem import AttentionProblem
from attention.tile import Demand
from attention.variant import PARTS

AXIS = ("key_splits", (1, 2, 3, 4, 8))
MOST_TILES = 1024  # six waves of two blocks on an SM, of the 80 or so that a GPU has which lacks cp.async


def pointless(problem: AttentionProblem, shape: Shape) -> str | None:
    """Why keys need not be split as a configuration says."""
    if shape.key_splits == 1:
        return None
    tiles = tiles_of(problem, shape.tile_rows)
    if tiles > MOST_TILES:
        return f"deals keys of {tiles} tiles of rows to several blocks, where {MOST_TILES} are waves enough"
    of_row = -(-_most_keys(problem, shape.tile_rows) // shape.tile_keys)
    if of_row < shape.key_splits:
        return f"deals the keys of a row to {shape.key_splits} blocks, which are {of_row} tiles"
    return None


def _most_keys(problem: AttentionProblem, rows: int) -> int:
    """That a tile of rows may see."""
    left, right = problem.edges.left, problem.edges.right
    if left is None or right is None:
        return problem.seq_kv
    return min(problem.seq_kv, right - left + rows)


def partial_floats(shape: Shape) -> int:
    """What one block leaves: its outputs, and of each thread two maxima and two sums for every 16 rows of its warp."""
    return shape.tile_rows * shape.head_dim + shape.threads * shape.warp_rows // 16 * 4


def parts(shape: Shape) -> tuple[Demand, ...]:
    """Beside its edge a block asks for room for its part of out, which the last of a tile's blocks reads again."""
    if shape.key_splits == 1:
        return ()
    return (Demand("parts of out", PARTS, 8 * partial_floats(shape), "dram_bandwidth_bytes_per_s"),)


def workspace_bytes(problem: AttentionProblem, shape: Shape) -> int:
    """Device memory for what all blocks leave."""
    if shape.key_splits == 1:
        return 0
    tiles = tiles_of(problem, shape.tile_rows)
    return 4 * tiles * shape.key_splits * partial_floats(shape)
