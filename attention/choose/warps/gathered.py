"""What blocks that share keys of a tile of rows take to bring their parts together, in cycles (split_keys/parts.cuh).

Each leaves its rows and counts itself, on a line that the first of them brings from DRAM. The last one reads what all
have left, some parts at once, and adds it up.
"""

import math

from attention.choose.coefficients import CHUNK, FLOAT_BYTES, STATE_FLOATS, of
from attention.choose.rates import DRAM_LATENCY, L2, L2_LATENCY
from attention.choose.warps.block import Part, Rates
from attention.tile import WarpTile


def left(tile: WarpTile, rows: int, rates: Rates) -> tuple[Part, ...]:
    """Of each block, which stays for it: what it leaves of `rows` of the tile that are used, and that it is counted."""
    return (
        Part("parts to L2", _bytes(tile, rows) / rates.l2_bytes, L2),
        Part("trips for arrivals", of("arrival_trips") * rates.l2_latency, L2_LATENCY),
        Part("count of arrivals", rates.dram_latency, DRAM_LATENCY),
    )


def added(tile: WarpTile, rows: int, parts: int, rates: Rates) -> tuple[Part, ...]:
    """Of the block that arrives last."""
    passes = math.ceil(rows * tile.value_dim / CHUNK / tile.threads)
    times = passes * math.ceil(parts / of("parts_at_once"))
    return (
        Part("parts from L2", _bytes(tile, rows) * parts / rates.l2_bytes, L2),
        Part("trips for parts", of("part_trips") * times * rates.l2_latency, L2_LATENCY),
        Part("parts are added", of("added_instructions") * times + of("pass_instructions") * passes, ""),
    )


def _bytes(tile: WarpTile, rows: int) -> int:
    return FLOAT_BYTES * (tile.value_dim + STATE_FLOATS) * rows
