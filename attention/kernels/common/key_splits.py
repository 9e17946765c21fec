"""Keys of a tile of rows that several blocks share (key_splits.cuh): where that is of use, and what it takes.

No torch here.
"""

from typing import Protocol

from attention.kernels.common.family import tiles_of
from attention.problem import AttentionProblem
from attention.tile import Demand
from attention.variant import PARTS

AXIS = ("key_splits", (1, 2, 3, 4, 8))
MOST_TILES = 1024  # six waves of two blocks on an SM, of the 80 or so that a GPU has which lacks cp.async


class Shape(Protocol):
    """A tile of rows that blocks may share, and heads of a `group`; `partial_floats` is what one block leaves."""

    @property
    def tile_rows(self) -> int: ...
    @property
    def tile_keys(self) -> int: ...
    @property
    def key_splits(self) -> int: ...
    @property
    def group(self) -> int: ...
    @property
    def partial_floats(self) -> int: ...


def too_many(tiles: int, key_splits: int) -> str | None:
    """Why so many tiles of rows fill the GPU alone."""
    if key_splits == 1 or tiles <= MOST_TILES:
        return None
    return f"deals keys of {tiles} tiles of rows to several blocks, where {MOST_TILES} are waves enough"


def pointless(problem: AttentionProblem, shape: Shape) -> str | None:
    """Why keys need not be split as a configuration says."""
    if shape.key_splits == 1:
        return None
    if why := too_many(tiles_of(problem, shape.tile_rows, shape.group), shape.key_splits):
        return why
    of_row = -(-_most_keys(problem, -(-shape.tile_rows // shape.group)) // shape.tile_keys)
    if of_row < shape.key_splits:
        return f"deals the keys of a row to {shape.key_splits} blocks, which are {of_row} tiles"
    return None


def _most_keys(problem: AttentionProblem, rows: int) -> int:
    """That a tile of rows may see."""
    left, right = problem.edges.left, problem.edges.right
    if left is None or right is None:
        return problem.seq_kv
    return min(problem.seq_kv, right - left + rows)


def parts(shape: Shape) -> tuple[Demand, ...]:
    """Beside its edge a block asks for room for its part of out, which the last of a tile's blocks reads again."""
    if shape.key_splits == 1:
        return ()
    return (Demand("parts of out", PARTS, 8 * shape.partial_floats, "dram_bandwidth_bytes_per_s"),)


def workspace_bytes(problem: AttentionProblem, shape: Shape) -> int:
    """Device memory for what all blocks leave."""
    if shape.key_splits == 1:
        return 0
    tiles = tiles_of(problem, shape.tile_rows, shape.group)
    return 4 * tiles * shape.key_splits * shape.partial_floats
