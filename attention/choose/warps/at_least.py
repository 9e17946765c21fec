"""What memory takes at least where unequal blocks come one after another, and run out."""

from attention.choose.coefficients.table import BYTES
from attention.choose.prediction import Term
from attention.choose.rates import DRAM, Machine
from attention.choose.scores import ScoreCost
from attention.choose.unlike import seconds_of_all
from attention.choose.warps.block import block_of
from attention.choose.warps.dealt import Dealt
from attention.choose.warps.work import Rates
from attention.tile import WarpTile


def of_unlike(machine: Machine, tile: WarpTile, cost: ScoreCost, share: Dealt, rates: Rates, clock: float) -> Term:
    """Blocks of unequal keys, of which the longest has its place while others are through."""
    whole = share.at_least.work
    half = whole._replace(slices=whole.slices / 2, hidden=whole.hidden / 2)
    further = block_of(tile, cost, whole, 1, rates).cycles - block_of(tile, cost, half, 1, rates).cycles
    dram = machine.value(DRAM)
    shared = BYTES * tile.step_keys * (tile.head_dim + tile.value_dim) / whole.readers / dram
    seconds = seconds_of_all(share.unlike, share.places, further / half.slices / clock, shared)
    return Term("blocks of unequal keys", "memory", seconds, DRAM, dram)
