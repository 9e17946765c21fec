"""How often a ring's place can be filled anew: short steps wait for their keys.

A place is free behind the product that read it, and the tile after the next ones has it: the thread asks for a tile of
K and one of V, box by box, and the boxes come. Where nobody else has brought them they come from DRAM. One query of
head dim 96, whose rows are three boxes, took 6 % longer with tiles of 64 keys than of 128 beside what their steps take.

With ALiBi K's place is given back behind a softmax, not before it (kKeysFirst in config.cuh, and so ptxas has it):
tiles of 64 keys came 4 % too fast beside 96 on 28 problems.
"""

from attention.choose.coefficients.table import BYTES, FIRST_KEYS, FIRST_VALUES, GROUP_ROWS, of
from attention.choose.rates import DRAM_LATENCY
from attention.choose.scores import ScoreCost
from attention.choose.warpgroups.handed import asks_alone
from attention.choose.warpgroups.parts import Part, Rates
from attention.choose.warpgroups.step import product_of
from attention.tile import WarpgroupTile


def late_of_ring(tile: WarpgroupTile, cost: ScoreCost, step: float, readers: int, rates: Rates) -> Part:
    """Cycles that a tile of keys comes later than a `step` before would let it be read, which so many blocks read."""
    asks = asks_alone(tile.head_dim, tile.key_panel) + asks_alone(tile.value_dim, tile.value_panel)
    trip = rates.l2_latency + (rates.dram_latency - rates.l2_latency) / readers
    comes = of("box_trips") * trip + BYTES * tile.keys * tile.head_dim / rates.l2_bytes
    turn = tile.warpgroups * product_of(tile, tile.head_dim, 0, rates) + asks + comes
    if cost.distances and tile.warpgroups == 2 and tile.keys <= FIRST_KEYS and tile.value_dim > FIRST_VALUES:
        scores = tile.warpgroups * GROUP_ROWS * tile.keys
        turn += rates.product_latency + scores * (cost.special / rates.ex2 + cost.distances / rates.ffma)
    return Part("tiles of a ring", "ring", max(0.0, turn / tile.stages - step), DRAM_LATENCY)


def late_of_pair(tile: WarpgroupTile, step: float, rates: Rates) -> Part:
    """Likewise of a mask's rows that two blocks share, which are asked for as soon as both have read the last ones.

    Beside K and V of one panel of 64 numbers they came in time.
    """
    turn = of("pair_trips") * rates.dram_latency if tile.share > 1 and tile.value_dim > FIRST_VALUES else 0.0
    return Part("rows of a pair's mask", "ring", of("late_of_pair") * max(0.0, turn - step), DRAM_LATENCY)
