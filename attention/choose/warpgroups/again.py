"""What a warpgroup takes more of a tile of keys that no guess serves: scores are weighed again (row_softmax.cuh)."""

from attention.choose.coefficients.table import GROUP_ROWS, of
from attention.choose.guesses import outgrown
from attention.choose.rates import EX2_LATENCY, FFMA_LATENCY, HANDOVER, SMEM_LATENCY
from attention.choose.scores import ScoreCost
from attention.choose.warpgroups.parts import Part, Rates
from attention.tile import WarpgroupTile


def again(tile: WarpgroupTile, cost: ScoreCost, rates: Rates) -> float:
    """Cycles: maxima are searched for, exponentials taken, outputs rescaled, and all that one after another."""
    weighed = cost.maxima / of("alu_per_clk_sm") + max(cost.special / rates.ex2, cost.arithmetic / rates.ffma)
    waits = sum(part.cycles for part in waits_of(searched=True, rates=rates))
    return GROUP_ROWS * (tile.keys * weighed + tile.value_dim / rates.ffma) + waits


def outgrown_of_step(tile: WarpgroupTile, cost: ScoreCost, rates: Rates) -> float:
    """The same of the mean tile of keys; nothing where scores do not grow."""
    if not cost.slopes:
        return 0.0
    return cost.behind * outgrown(cost.slopes, tile.keys) * again(tile, cost, rates)


def waits_of(searched: bool, rates: Rates, lone: bool = False) -> tuple[Part, ...]:
    """What stands between a tile's scores and its last exponential, beside the product's own latency."""
    arithmetic = of("arithmetic_waits") + (of("maxima_waits") if searched else 0.0)
    handed = of("handed_waits") if lone and rates.handover_latency else 0.0
    handovers = Part("waits for K and V", "handed waits", handed * rates.handover_latency, HANDOVER)
    trips = (of("shared_waits") - handed) * rates.smem_latency
    return (
        *((handovers,) if handed else ()),
        Part("waits for shared memory", "shared waits", trips, SMEM_LATENCY),
        Part("waits for exponentials", "ex2 waits", of("exponential_waits") * rates.ex2_latency, EX2_LATENCY),
        Part("waits for arithmetic", "arithmetic waits", arithmetic * rates.ffma_latency, FFMA_LATENCY),
    )
