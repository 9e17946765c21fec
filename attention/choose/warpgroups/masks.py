"""What a mask's rows in shared memory cost warpgroups, beside what is done with them (mask_rows.cuh, shared_mask.cuh).

A warpgroup waits for its rows of a tile of keys, reads them, sees to it that no box of TMA comes before they are read,
and says so: none of it runs beside its own products. Of a block by itself a lane of each warp asks for the next rows in
between; of a pair a warp beside the producer does, which finds a tile of rows for itself. There is room for one tile of
keys, so that nobody asks for the first rows before their tile's number is told.
"""

from attention.choose.coefficients import GROUP_ROWS, of
from attention.choose.rates import DRAM_LATENCY, SMEM_LATENCY
from attention.choose.scores import ScoreCost
from attention.choose.warpgroups.parts import Part, Rates
from attention.features.mask import WIDE_BYTES
from attention.tile import WarpgroupTile


def mask_of_step(tile: WarpgroupTile, cost: ScoreCost, rates: Rates) -> tuple[Part, ...]:
    """Of each tile of keys; nothing where no mask comes ahead."""
    if not tile.mask_ahead:
        return ()
    trips = of("mask_trips") * rates.smem_latency
    asked = _asked() if tile.share == 1 else 0.0
    # Words of 32 bits: a load has two scores' of each lane, and takes two cycles.
    wide = _bytes(tile, cost) / rates.smem_bytes if cost.mask_bytes == WIDE_BYTES else 0.0
    return (Part("mask through shared memory", "mask", trips + asked + wide, SMEM_LATENCY),)


def mask_of_rows(tile: WarpgroupTile, cost: ScoreCost, rates: Rates) -> Part:
    """Of each tile of rows that has several of keys."""
    found = of("found_instructions") if tile.share > 1 else 0.0
    comes = rates.dram_latency + _bytes(tile, cost) / rates.l2_bytes
    return Part("first rows of a mask", "first rows of a mask", found + _asked() + comes, DRAM_LATENCY)


def _bytes(tile: WarpgroupTile, cost: ScoreCost) -> int:
    """Of a tile of rows and keys."""
    return cost.mask_bytes * GROUP_ROWS * tile.warpgroups * tile.keys


def _asked() -> float:
    """Cycles of a thread that asks for a box."""
    return of("beside_consumers") * (of("room_instructions") + of("box_instructions"))
