"""How much code a kernel of warps runs through: a call's first pass over it waits for the instruction cache."""

from attention.choose.coefficients.table import of
from attention.tile import WarpTile


def code_lines_of(tile: WarpTile, parts: int) -> float:
    """Lines of code that a call of so many parts runs through for the first time."""
    both = tile.head_dim + tile.value_dim
    if tile.key_warps == 1:
        return of("warp_code_lines") + of("warp_dim_lines") * both
    return of("few_code_lines") + of("few_dim_lines") * both + (of("few_part_lines") if parts > 1 else 0.0)
