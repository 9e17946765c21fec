"""What a mask's rows in shared memory cost warpgroups, beside what is done with them (mask_rows.cuh, shared_mask.cuh).

A warpgroup waits for its rows of a tile of keys, reads them, sees to it that no box of TMA comes before they are read,
and says so: none of it runs beside its own products. Of a block by itself a lane of each warp asks for the next rows in
between; of a pair a warp beside the producer does, as soon as both blocks have read a tile of keys.
"""

from attention.choose.coefficients.table import GROUP_ROWS, of
from attention.choose.rates import DRAM_LATENCY, EX2, SMEM_LATENCY
from attention.choose.scores import ScoreCost
from attention.choose.warpgroups.again import again
from attention.choose.warpgroups.parts import Part, Rates
from attention.features.mask import WIDE_BYTES
from attention.tile import WarpgroupTile


def mask_of_step(tile: WarpgroupTile, cost: ScoreCost, rates: Rates) -> tuple[Part, ...]:
    """Of each tile of keys; nothing where no mask comes ahead."""
    if not tile.mask_ahead:
        return ()
    trips = of("mask_trips") * rates.smem_latency
    asked = _asked() if tile.share == 1 else 0.0
    # Words of 32 bits: a load has two scores' of each lane, and takes two cycles; each warpgroup waits for its own.
    wide = _bytes(tile, cost) / tile.warpgroups / rates.smem_bytes if cost.mask_bytes == WIDE_BYTES else 0.0
    return (Part("mask through shared memory", "mask", trips + asked + wide, SMEM_LATENCY),)


def mask_of_rows(tile: WarpgroupTile, cost: ScoreCost, rates: Rates) -> tuple[Part, ...]:
    """Of each tile of rows that has several of keys.

    A block by itself asks for the first rows when it begins; a pair's come while the rows before end. Some row of a
    warpgroup sees its first key behind the first tile, as where keys are padding: no guess serves that.
    """
    late = again(tile, cost, rates) * tile.warpgroups
    if tile.warpgroups >= of("hidden_from"):
        late *= of("late_warpgroups")
    comes = rates.dram_latency + _bytes(tile, cost) / rates.l2_bytes + _asked() if tile.share == 1 else 0.0
    return (
        Part("first rows of a mask", "first rows of a mask", comes, DRAM_LATENCY),
        Part("first keys behind a first tile", "first keys", late, EX2),
    )


def mask_lines(tile: WarpgroupTile, cost: ScoreCost) -> float:
    """Of code, beside what a warpgroup runs through without a mask, of rows that have several tiles of keys."""
    of_bools = of("seeded_bool_lines") * tile.keys if tile.seeded and cost.mask_bytes == 1 else 0.0
    return of("mask_lines") + of_bools


def _bytes(tile: WarpgroupTile, cost: ScoreCost) -> int:
    """Of a tile of rows and keys."""
    return cost.mask_bytes * GROUP_ROWS * tile.warpgroups * tile.keys


def _asked() -> float:
    """Cycles of a thread that asks for a box."""
    return of("beside_consumers") * (of("room_instructions") + of("box_instructions"))
