"""What blocks that share keys of a tile of rows take to bring their parts together, in cycles (split_keys/parts.cuh).

Each leaves its rows and counts itself, on a line that the first of them brings from DRAM. The last one reads what all
have left, a batch of parts at once, and adds it up, a thread four columns of a row at a time, or more where there are
more rows than threads for them (added_parts.cuh). What the L2 does not hold of all parts goes to DRAM and comes back.
"""

import math
from dataclasses import dataclass
from functools import lru_cache

from attention.choose.coefficients.table import (
    COLUMNS,
    COMBINED,
    COMBINING_BLOCKS,
    COMBINING_THREADS,
    FEW_PARTS,
    FEWEST_PARTS,
    FLOAT_BYTES,
    MOST_SPANS,
    SLOT,
    SOME_SPANS,
    STATE_FLOATS,
    STORED,
    of,
)
from attention.choose.rates import DRAM, DRAM_LATENCY, L2, L2_LATENCY
from attention.choose.warps.work import Part, Rates
from attention.tile import WarpTile


def bytes_of(tile: WarpTile, rows: int) -> int:
    """What a block leaves of `rows` of its tile that are used."""
    return FLOAT_BYTES * (tile.value_dim + STATE_FLOATS) * rows


def left(tile: WarpTile, rows: int, beyond: float, resident: int, rates: Rates) -> tuple[Part, ...]:
    """Of each block, which stays for it: what it leaves, a share of it `beyond` the L2, and that it is counted.

    All `resident` ones leave theirs together, through the SM's one port. A second kernel counts nobody: it begins when
    all have ended.
    """
    stored = (of("part_sectors") if tile.kernels == 1 else 1.0) * bytes_of(tile, rows) * resident
    parts = (
        Part("parts to L2", stored / min(STORED, rates.l2_bytes), L2),
        Part("parts to DRAM", beyond * bytes_of(tile, rows) / rates.dram_bytes, DRAM),
    )
    if tile.kernels > 1:
        return parts
    return (
        *parts,
        Part("trips for arrivals", of("arrival_trips") * rates.l2_latency, L2_LATENCY),
        Part("count of arrivals", rates.dram_latency, DRAM_LATENCY),
    )


def trips_of_part(l2_latency: float, dram_latency: float) -> float:
    """The last two of these, in cycles."""
    return of("arrival_trips") * l2_latency + dram_latency


@dataclass(frozen=True)
class Batch:
    """What a thread asks for at a time: so many parts, of so many spans of columns each."""

    parts: int
    spans: int


def batch_of(tile: WarpTile, rows: int, parts: int) -> Batch:
    """Of a block that adds up so many parts: store_parts in added_parts.cuh."""
    if tile.key_warps == 1:
        return Batch(FEWEST_PARTS, MOST_SPANS)
    if rows * tile.value_dim > COLUMNS * tile.threads:
        return Batch(FEW_PARTS, SOME_SPANS)
    return Batch(FEW_PARTS if parts <= FEW_PARTS else tile.parts_at_once, 1)


def added(tile: WarpTile, rows: int, parts: int, beyond: float, gathering: float, rates: Rates) -> tuple[Part, ...]:
    """Of the block that arrives last, where an SM has `gathering` of them at a time.

    Those that have none leave it their share of the L2, of which an SM's port takes as much as a slice gives.
    """
    times, passes, instructions = _adding(tile, rows, parts)
    read = bytes_of(tile, rows) * parts
    jumps = of("part_jumps") if tile.key_warps == 1 else 0.0
    return (
        Part("parts from L2", read / min(SLOT, rates.l2_bytes / gathering), L2),
        Part("parts from DRAM", beyond * read / rates.dram_bytes, DRAM),
        Part("trips for parts", times * rates.l2_latency, L2_LATENCY),
        Part("code of parts for the first time", jumps * rates.dram_latency, DRAM_LATENCY),
        Part("parts are added", instructions + of("pass_instructions") * passes, ""),
    )


def cycles_of_adding(tile: WarpTile, rows: int, parts: int, l2_latency: float) -> float:
    """The trips and the instructions of these, without what the bytes take."""
    times, passes, instructions = _adding(tile, rows, parts)
    return times * l2_latency + instructions + of("pass_instructions") * passes


@lru_cache(maxsize=2048)  # a floor and a prediction ask
def _adding(tile: WarpTile, rows: int, parts: int) -> tuple[int, int, float]:
    """How often a thread asks for a batch, its passes over rows, and the instructions of all batches."""
    batch = batch_of(tile, rows, parts)
    passes = math.ceil(rows * tile.value_dim / COLUMNS / batch.spans / tile.threads)
    times = passes * math.ceil(parts / batch.parts)
    added_up = of("added_instructions") + of("span_instructions") * (batch.spans - 1)
    return times, passes, times * (of("batch_instructions") + added_up * batch.parts)


def combined(tile: WarpTile, rows: float, parts: int, beyond: float, rates: Rates) -> tuple[Part, ...]:
    """Of an SM in a second kernel, which adds up so many rows.

    As FlashAttention-2's does (flash_fwd_splitkv_combine_kernel): a block asks for the sums of its rows, and then for
    one part after another. Its instructions are counted as ours are.
    """
    block_rows = COMBINED // math.gcd(tile.value_dim, COMBINING_THREADS)
    blocks, read = max(1.0, rows / block_rows), bytes_of(tile, 1) * max(rows, block_rows) * parts
    rounds = math.ceil(blocks / COMBINING_BLOCKS)
    instructions = of("pass_instructions") + of("batch_instructions") + of("added_instructions") * parts
    return (
        Part("parts from L2", read / rates.l2_bytes, L2),
        Part("parts from DRAM", beyond * read / rates.dram_bytes, DRAM),
        Part("trips for parts", rounds * (1 + parts) * rates.l2_latency, L2_LATENCY),
        Part("begin of a second kernel", rates.dram_latency, DRAM_LATENCY),
        Part("parts are added", blocks * instructions, ""),
    )
