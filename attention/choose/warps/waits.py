"""What a block of warps waits for while it asks no unit, and its instructions beside those of slices, in cycles."""

import math
from functools import lru_cache
from typing import NamedTuple

from attention.choose.coefficients.table import (
    BYTES,
    COLUMNS,
    COPY,
    FRAGMENT,
    LANES,
    MOST_SPANS,
    PRODUCT,
    SCHEDULERS,
    WORD_COLUMNS,
    of,
)
from attention.choose.rates import (
    DRAM_LATENCY,
    EX2_LATENCY,
    FFMA_LATENCY,
    L2,
    L2_LATENCY,
    SMEM_LATENCY,
)
from attention.choose.scores import ScoreCost
from attention.choose.warps.work import LATENCY, Rates, Work
from attention.tile import WarpTile


class Waits(NamedTuple):
    """Of a slice, in cycles: for its products and its fragments, and for these where a key is hidden from a row.

    `mask_trips` are those for a mask, and `hidden_trips` those to shared memory where a key is hidden. `of_tile` comes
    with each tile, `first_bytes` before the first slice, and `begin` before that. `ends` are what a block of any number
    of slices takes behind its last one: the last of WAITS.
    """

    products: float
    fragments: float
    late: float
    late_hidden: float
    hidden_trips: float
    mask_trips: float
    of_tile: float
    first_bytes: int
    begin: float
    ends: tuple[float, float]


@lru_cache(maxsize=2048)  # blocks of any number of slices wait alike
def _waits_of_a_slice(tile: WarpTile, waiting_loads: float, resident: int, rates: Rates) -> Waits:
    both, panels = tile.head_dim + tile.value_dim, tile.warp_rows / FRAGMENT
    fragments = tile.slice_keys / FRAGMENT * both / FRAGMENT
    # Of the products of one fragment, two of m16n8k16 for each panel of rows.
    one = panels * PRODUCT * FRAGMENT**3 / (rates.tensor_flops / SCHEDULERS)
    ahead = max(tile.ahead, of("fragments_ahead")) if tile.q_in_registers else tile.ahead
    late = max(0.0, rates.fragment_latency - ahead * one)
    late_hidden = max(0.0, rates.fragment_latency - one * (of("shared_fragments_ahead") if tile.key_warps > 1 else 1))
    # Scores of 8 keys are a chain of products over the head dim, and those of a narrow slice are too few to fill it.
    chained = tile.head_dim / FRAGMENT * max(0.0, rates.product_latency - tile.slice_keys / FRAGMENT * one)
    # Rows of a panel are asked for together. Who is first brings them from DRAM, and heads that share them wait alike.
    masks = math.ceil(waiting_loads * FRAGMENT * tile.slice_keys / LANES) * panels
    return Waits(
        of("slice_products") * rates.product_latency + chained,
        fragments,
        late,
        late_hidden,
        of("hidden_trips") * panels,
        masks,
        _of_a_tile(tile),
        BYTES * tile.keys * both,
        instructions_of(tile),
        _ends(tile, resident),
    )


# Of a whole block, what no unit is asked for, with the constants that it rests on: while it has keys, before the first
# have come, and behind the last.
WITHIN = (
    ("waits for products", LATENCY),
    ("waits for shared memory", SMEM_LATENCY),
    ("waits for fragments", SMEM_LATENCY),
    ("waits for exponentials", EX2_LATENCY),
    ("waits for arithmetic", FFMA_LATENCY),
    ("mask from L2", L2_LATENCY),
    ("turns of tiles", L2_LATENCY),
    ("instructions of tiles", ""),
    ("waits for parts of lines", ""),
)
ENTERING = (("first K and V from L2", L2), ("begin of a block", DRAM_LATENCY), ("instructions of a block", ""))
ENDING = (("out from registers", ""), ("warps are joined", ""))
WAITS = *WITHIN, *ENTERING, *ENDING
Each = tuple[float, ...]  # cycles


def waits_of(tile: WarpTile, cost: ScoreCost, work: Work, resident: int, rates: Rates) -> tuple[Each, Each, Each]:
    """Cycles of each WITHIN, of each ENTERING, and of each ENDING."""
    slices, of_slice = work.slices, _waits_of_a_slice(tile, cost.waiting_loads, resident, rates)
    trips = of("slice_trips") * slices + of_slice.hidden_trips * work.hidden + of("block_trips")
    tiles = work.loaded * slices * tile.step_keys / tile.keys
    ahead = min(tiles, tile.stages - 1) if tile.key_warps > 1 else 0  # their loads stand before the loop
    together = of("barrier_waits") * tiles if resident == 1 and tile.warps > SCHEDULERS else 0.0
    parted = work.parted * tile.keys if resident == 1 and tile.key_warps > 1 else 0.0
    latency = rates.l2_latency + work.cold * (rates.dram_latency - rates.l2_latency)
    within = (
        of_slice.products * slices,
        trips * rates.smem_latency,
        of_slice.fragments * ((slices - work.hidden) * of_slice.late + work.hidden * of_slice.late_hidden),
        of("exponential_waits") * slices * rates.ex2_latency,
        of("slice_arithmetic") * slices * rates.ffma_latency,
        of_slice.mask_trips * (slices + together) * latency,
        of("turn_trips") * (tiles - ahead) * rates.l2_latency,
        tiles * of_slice.of_tile - ahead * of("tile_instructions") + _of_own_rows(tile, work),
        tiles * of("parted_line_waits") * parted,
    )
    first = of_slice.first_bytes * (1 - 1 / work.readers) * resident / rates.l2_bytes
    return within, (first, rates.dram_latency, of_slice.begin), of_slice.ends


def waits_of_slices(tile: WarpTile, cost: ScoreCost, hidden: float, rates: Rates) -> float:
    """Of these what comes with each slice, of which a share has keys that are hidden."""
    of_slice = _waits_of_a_slice(tile, cost.waiting_loads, 1, rates)
    return (
        of_slice.products
        + (of("slice_trips") + of_slice.hidden_trips * hidden) * rates.smem_latency
        + of_slice.fragments * ((1 - hidden) * of_slice.late + hidden * of_slice.late_hidden)
        + of("exponential_waits") * rates.ex2_latency
        + of("slice_arithmetic") * rates.ffma_latency
    )


def _of_a_tile(tile: WarpTile) -> float:
    """Cycles behind the barrier in which warps that share rows ask for a tile ahead, beside no product of their own."""
    if tile.key_warps == 1:
        return 0.0
    copies = BYTES * tile.keys * (tile.head_dim + tile.value_dim) / COPY / tile.threads
    return of("tile_instructions") + of("copy_instructions") * copies


def _of_own_rows(tile: WarpTile, work: Work) -> float:
    """Cycles of slices where warps have rows of their own: at hidden keys each panel of rows but the first has its own.

    Where blocks may share keys, slices ask whether their warp has rows, and whether these see them.
    """
    if tile.takes_maxima:
        return 0.0
    panels = of("hidden_panel_instructions") * (tile.warp_rows / FRAGMENT - 1) * work.hidden
    if not tile.asks_for_idle:
        return panels
    return panels + of("idle_instructions") * work.slices + of("idle_hidden_instructions") * work.hidden


def _ends(tile: WarpTile, resident: int) -> tuple[float, float]:
    """From the last products to the block's outputs, or to what it leaves of a part: ENDING.

    Warps that share rows leave those that are used in shared memory, eight at a time, and a thread adds up four columns
    of a row (key_warps.cuh).
    """
    if tile.key_warps == 1:
        panels = tile.warp_rows / FRAGMENT
        stored = panels * (of("stored") * tile.value_dim + of("stored_at_least"))
        return stored * resident * tile.warps / SCHEDULERS, 0.0
    eights = math.ceil(min(tile.used_rows, tile.warp_rows) / (FRAGMENT // 2))
    spans = 1 if tile.used_rows * tile.value_dim <= COLUMNS * tile.threads else MOST_SPANS
    passes = math.ceil(tile.used_rows * tile.value_dim / COLUMNS / spans / tile.threads)
    leaves = of("joined_row_instructions") + of("joined_store_cycles") * tile.value_dim / WORD_COLUMNS
    joined = of("joined_instructions") + of("joined_span_instructions") * (spans - 1)
    stored = of("pass_instructions") * passes if tile.key_splits == 1 else 0.0
    return stored, eights * leaves + joined * passes


def instructions_of(tile: WarpTile) -> float:
    """Cycles before a block's first loads, and behind its last keys, in which it finds its place."""
    if not tile.threads:
        return of("block_instructions")
    return of("few_block_instructions") + (of("arrival_instructions") if tile.key_splits > 1 else 0.0)
