"""What blocks that share keys of a tile of rows take to bring their parts together, in cycles (split_keys/parts.cuh).

Each leaves its rows and counts itself. The last one reads what all have left, some parts at once, and adds it up.
"""

import math

from attention.choose.coefficients import CHUNK, FLOAT_BYTES, STATE_FLOATS, of
from attention.choose.rates import FFMA, L2, L2_LATENCY
from attention.choose.warps.block import Part, Rates
from attention.tile import WarpTile


def gathered(tile: WarpTile, rows: int, parts: int, rates: Rates) -> tuple[Part, ...]:
    """Of the block that arrives last; nothing where a block has all keys. `rows` of the tile are used."""
    if parts == 1:
        return ()
    row_bytes = FLOAT_BYTES * (tile.value_dim + STATE_FLOATS)
    passes = math.ceil(rows * tile.value_dim / CHUNK / tile.threads)
    trips = of("arrival_trips") + passes * math.ceil(parts / of("parts_at_once"))
    return (
        Part("parts from L2", row_bytes * rows * (1 + parts) / rates.l2_bytes, L2),
        Part("trips for parts", trips * rates.l2_latency, L2_LATENCY),
        Part("parts are added", rows * parts * tile.value_dim / rates.ffma, FFMA),
    )
