"""What lies between two tiles of rows: when the next one's Q can be there, and when a warpgroup asks for it.

One thread asks for everything, a box at a time. The last tile of V has room when that of a ring's length before was
multiplied, and only behind it does the thread find the next rows, by three or four divisions, and ask for their first
K and for their Q. Of packed sequences that are dealt by their own lengths it searches for the tile's besides. From
there the first warpgroup takes a step for each tile of the ring but one, its last product, its own outputs and its way
to the next rows; where rows cross, the steps and that way alone. With 64 keys and a ring of two a step is so short that
the next rows come late, wherever Q is kept; so they do where a tile has many boxes, at head dims 96 and 160 (panels of
32 numbers).

Clocks in the kernel (an H200, head dims 64 to 128) have the thread at 1550 to 3050 cycles from its last V to its last
Q, 1.6 to 2.4 times what it takes alone, and Q 1430 to 1750 more on its way where somebody waits for it: of 512 causal
tokens at head dim 128 warpgroups wait 300 to 1300 cycles with tiles of 64 keys, and next to nothing with 128.
"""

import math
from typing import NamedTuple

from attention.choose.coefficients.table import BYTES, GROUP_ROWS, LINE, WORD_COLUMNS, of
from attention.choose.rates import DRAM_LATENCY
from attention.choose.warpgroups.parts import Part, Rates
from attention.tile import WarpgroupTile


class Handed(NamedTuple):
    """Cycles for which the next rows' loads leave the tensor cores idle at every change of rows.

    `late` ones come on top where the rows before have more tiles of keys than a ring holds.
    """

    queries: Part
    late: Part


def handed(tile: WarpgroupTile, step: float, last: float, rates: Rates) -> Handed:
    """By the cycles of a `step`, and of the `last` product behind it."""
    groups, l2 = tile.warpgroups, rates.l2_bytes
    q_bytes = BYTES * GROUP_ROWS * tile.head_dim
    k_bytes = BYTES * tile.keys * tile.head_dim
    ready = (tile.stages - 1) * step + of("between_rows") * rates.ffma_latency
    if not tile.crosses:
        ready += last + stored(tile)
    asks = _asks(tile.head_dim, tile.key_panel)  # of K's tile, and of each warpgroup's Q
    divided = of("found_instructions") + (of("part_found_instructions") if tile.key_splits > 1 else 0.0)
    searched = of("search_instructions") * math.ceil(math.log2(tile.sequences))
    found = _asks(tile.value_dim, tile.value_panel) + of("beside_consumers") * (divided + searched)
    asked = found + asks + groups * asks
    own = 0.0
    if not tile.q_in_registers:  # its room is free behind the last product of scores
        own = max(0.0, step + asks + rates.dram_latency + groups * q_bytes / l2 - ready)
        asked = max(asked, step + groups * asks)
    together = found + rates.dram_latency + (k_bytes + groups * q_bytes) / l2
    comes = max(together, asked + rates.dram_latency + q_bytes / l2)
    late = max(0.0, comes - ready - own)
    return Handed(
        Part("Q from DRAM", "queries", own, DRAM_LATENCY),
        Part("next rows asked for late", "handed", late, DRAM_LATENCY),
    )


def changes(tile: WarpgroupTile, keys: float, rows: float) -> tuple[float, float]:
    """How often rows change, and how often behind more tiles of keys than a ring holds, of so many tiles of both."""
    times = max(0.0, rows - 1)
    return times, times * min(1.0, max(0.0, keys / max(1.0, rows) - tile.stages))


def stored(tile: WarpgroupTile) -> float:
    """Instructions of one warpgroup's epilogue, or of leaving a part."""
    if tile.key_splits > 1:
        return of("left_at_least") + tile.value_dim / WORD_COLUMNS
    return of("stored") * tile.value_dim + of("stored_at_least")


def _asks(dim: int, panel: int) -> float:
    """Cycles of the producing thread for a tile whose rows are cut into panels, a box each."""
    return of("beside_consumers") * asks_alone(dim, panel)


def asks_alone(dim: int, panel: int) -> float:
    """The same of a thread that takes no turns with consumers."""
    boxes = -(-dim // (panel or LINE // BYTES))
    return of("room_instructions") + of("box_instructions") * boxes
