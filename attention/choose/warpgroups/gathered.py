"""What blocks that share keys of a tile of rows take to bring their parts together, in cycles of an SM.

Each part is left in the L2, and its warps count themselves behind it. When all are taken each block has a share of the
rows of all tiles, whose words come in whole lines, and waits for them once (sm90a split_keys/partials.cuh). Blocks that
found no keys left have one too: 150 keys of head dim 144, two tiles, took 14.0 us in 8 blocks and 11.6 in 44 (H200).
"""

import math

from attention.choose.coefficients.table import (
    FLOAT_BYTES,
    GROUP_ROWS,
    RUN,
    SHARED_STATE_FLOATS,
    WORD_COLUMNS,
    of,
)
from attention.choose.rates import COALESCED, DRAM_LATENCY, L2_LATENCY
from attention.choose.warpgroups.parts import Part, Rates
from attention.tile import WarpgroupTile


def bytes_of(tile: WarpgroupTile) -> int:
    """What a part leaves."""
    return FLOAT_BYTES * GROUP_ROWS * tile.warpgroups * (tile.value_dim + SHARED_STATE_FLOATS)


def left(tile: WarpgroupTile, rates: Rates) -> tuple[Part, ...]:
    """Of each part: what it leaves, behind which it counts itself."""
    if tile.key_splits == 1:
        return ()
    return (
        Part("parts to L2", "left", bytes_of(tile) / rates.line_bytes, COALESCED),
        Part("trips for arrivals", "arrivals", of("arrival_trips") * rates.l2_latency, L2_LATENCY),
    )


def gathered(tile: WarpgroupTile, parts: int, numbers: int, blocks: int, rates: Rates) -> tuple[Part, ...]:
    """Of each of so many `blocks`: its share of what so many `numbers` have left, of so many parts each."""
    if tile.key_splits == 1:
        return ()
    words = numbers / parts * tile.value_dim / WORD_COLUMNS / blocks  # of each of a block's warps
    runs = math.ceil(words / RUN)
    of_runs = of("run_instructions") + of("run_part_instructions") * RUN * math.ceil(parts / RUN)
    return (
        Part("parts are awaited", "awaited", of("await_trips") * rates.l2_latency, L2_LATENCY),
        Part(
            "code of parts for the first time", "part code", of("shared_part_jumps") * rates.dram_latency, DRAM_LATENCY
        ),
        Part("parts from L2", "brought", numbers * bytes_of(tile) / blocks / rates.line_bytes, COALESCED),
        Part("parts are added", "added", of("shared_part_instructions") + of_runs * runs, ""),
    )
