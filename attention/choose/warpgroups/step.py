"""What a tile of keys costs W warpgroups that share an SM, and what lies around the tiles of a tile of rows.

products    of all warpgroups interleave, instruction by instruction: they end together, and softmaxes begin together;
            of three, the first softmax runs beside what is left of the others' scores
a step      W qk, then max(latency + exposed integers + W exponentials + waits, W pv), of three W - 1 exponentials; of a
            lone warpgroup pv, exponentials and arithmetic take turns but for what probes saw hide
searched    every tile beside a mask that no TMA brings: maxima are exposed integers, and conversions follow a step
around      the first tile has no product of the tile before beside its softmax, the last product no softmax beside it;
            where tiles of rows cross, of an SM's first and last rows, and part of it between
"""

from functools import lru_cache
from typing import NamedTuple

from attention.choose.coefficients.table import BYTES, GROUP_ROWS, PRODUCT, THREAD_SHARE, of
from attention.choose.rates import EX2, FFMA, FFMA_LATENCY, L2_LATENCY, SMEM
from attention.choose.scores import ScoreCost
from attention.choose.warpgroups.again import outgrown_of_step, waits_of
from attention.choose.warpgroups.gathered import left
from attention.choose.warpgroups.handed import handed, stored
from attention.choose.warpgroups.masks import mask_of_step
from attention.choose.warpgroups.parts import Part, Parts, Rates
from attention.tile import WarpgroupTile

TENSOR, LATENCY = "wgmma_n128_bf16_flops_per_clk_sm", "wgmma_n128_bf16_latency_cycles"


class Steps(NamedTuple):
    """Parts of each tile of keys, of each tile of rows, and what a tile of keys costs beside at an edge of the band.

    `changes` come where another tile of rows follows, `late` where that is behind more tiles of keys than a ring holds,
    and `once` on every SM. `together` comes where warpgroups meet the first keys of a tile of rows together.
    """

    keys: Parts
    rows: Parts
    edges: Parts
    changes: Parts
    late: Parts
    once: Parts
    together: Parts


@lru_cache(maxsize=1024)
def steps_of(tile: WarpgroupTile, cost: ScoreCost, rates: Rates) -> Steps:
    """The cyclic schedule of the warpgroups of one SM."""
    groups, scores = tile.warpgroups, GROUP_ROWS * tile.keys
    latency = rates.held_latency if tile.q_in_registers else rates.product_latency
    q_bytes = BYTES * GROUP_ROWS * tile.head_dim
    few = groups < of("hidden_from")
    one = product_of(tile, tile.head_dim, 0 if tile.q_in_registers else q_bytes, rates)
    qk, pv = groups * one, groups * product_of(tile, tile.value_dim, 0, rates)
    alone = of("exposed") if few else 0.0  # warpgroups whose integers nothing hides
    exposed, asked = (each * scores / of("alu_per_clk_sm") for each in (alone, of("exposed")))
    at_edges = of("exposed_at_edges")
    # A guess finds no maxima, and packs beside its exponentials.
    maxima, conversions = (cost.maxima, of("conversions")) if cost.rescales else (0.0, 0.0)
    # Where no guess serves, at an edge and in a first tile, maxima are found, and numbers are packed behind them.
    searched = 0.0 if cost.rescales else of("maxima") + of("conversions")
    issued = cost.special + cost.arithmetic + cost.integers + maxima + of("conversions")
    special = (
        groups * scores * max(cost.special / rates.ex2, cost.arithmetic / rates.ffma, issued / of("issued_per_clk_sm"))
    )
    special += groups * (scores * cost.distances / rates.ffma + outgrown_of_step(tile, cost, rates))
    loads = 0.0 if tile.mask_ahead else cost.waiting_loads * tile.keys / THREAD_SHARE * rates.l2_latency
    # Scores begin as a mask before their products, each warpgroup's, which three hide as they hide maxima.
    seeds = groups * of("seeds") * exposed if tile.seeded else asked * cost.integers
    integers = exposed * maxima + seeds
    # Others' products fill the latency of one's.
    values = pv + (rates.held_latency if groups == 1 else 0.0)
    # Where three take turns, tensor cores wait for each one's begin, softmaxes for the first one's; two wait anyway.
    turn = 0.0 if few else of("turns") * rates.smem_latency
    if groups == 1:
        special = _beside_own_products(tile, cost, pv, rates)
    elif not few and not cost.integers:
        # The first one's softmax begins behind its own scores, when what is left of the others' is multiplied.
        special -= min(special / groups, (groups - 1) * one) * of("others_scores")
    softmax = latency + integers + special + loads + turn
    waits = (
        Part("waits for products", "product waits", of("product_waits") * latency, LATENCY),
        *waits_of(cost.rescales, rates, lone=groups == 1),
    )
    # What of them products do not cover.
    shown = max(0.0, min(1.0, 1.0 + (softmax - values) / sum(each.cycles for each in waits)))
    by_softmax = (
        Part("mask from L2", "softmax", softmax, L2_LATENCY)
        if loads > special
        else Part("exponentials", "softmax", softmax, EX2)
    )
    rescaled = Part("outputs rescaled", "rescaled", alone * GROUP_ROWS * tile.value_dim / rates.ffma, FFMA)
    keys = Parts.of(
        Part("Q K^T on wgmma", "scores", qk, TENSOR),
        by_softmax,
        Part("P V on wgmma", "softmax", values + groups * turn, TENSOR),
        Part("conversions", "conversions", exposed * conversions, ""),
        *(each._replace(cycles=shown * each.cycles) for each in waits),
        *((rescaled,) if cost.rescales else ()),
        *mask_of_step(tile, cost, rates),
        *((Part("distances of a tile", "distances", of("distances_begin"), ""),) if cost.distances else ()),
    )
    following = handed(tile, keys.cycles, values, rates)
    # Each of two searches its first tile; under an edge the second one's product hides some of the first one's search.
    of_first = asked * (cost.first + searched)
    hidden = of("searched_beside") * one if cost.edges else 0.0
    again = (groups - 1) * max(0.0, of_first - hidden) if few else 0.0
    ends = Part("first softmax or last values", "ends", min(softmax, values), TENSOR if values < softmax else EX2)
    crossed = of("crossed_ends") if tile.crosses else 1.0
    return Steps(
        keys,
        Parts.of(
            ends._replace(cycles=crossed * ends.cycles),
            Part("masks of the first tile", "first masks", of_first, ""),
            *((_held(q_bytes, rates),) if tile.q_in_registers else ()),
            Part("between tiles of rows", "between", of("between_rows") * rates.ffma_latency, FFMA_LATENCY),
            Part("out from registers", "out", groups * stored(tile), ""),
            *left(tile, rates),
        ),
        Parts.of(
            Part("masks at edges", "masks", at_edges * asked * (cost.edge + searched), ""),
            *(() if cost.rescales else (rescaled._replace(cycles=at_edges * rescaled.cycles),)),
        ),
        Parts.of(following.queries),
        Parts.of(following.late),
        Parts.of(ends._replace(cycles=(1 - crossed) * ends.cycles)),
        Parts.of(Part("masks of the first tile", "first masks", again, "")),
    )


def _beside_own_products(tile: WarpgroupTile, cost: ScoreCost, values: float, rates: Rates) -> float:
    """P V of a warpgroup by itself, its exponentials and arithmetic: they take turns but for what probes saw hide.

    Of several the others' softmaxes fill what is left of the tensor cores. Of a guess only what comes before the
    product is awaited is beside it, and the product's latency stands between. A warpgroup that causality leaves alone
    searches its tile, and packs behind the product.
    """
    scores = GROUP_ROWS * tile.keys
    special, arithmetic = scores * cost.special / rates.ex2, scores * (cost.arithmetic + cost.distances) / rates.ffma
    guessed = tile.group > 1
    share = min(1.0, of("guessed_ahead") * tile.value_dim * THREAD_SHARE / tile.keys) if guessed else 1.0
    hidden = rates.ex2_beside * min(share * special, values) + rates.ffma_beside * min(share * arithmetic, values)
    again = outgrown_of_step(tile, cost, rates)
    return values + (rates.held_latency if guessed else 0.0) + special + arithmetic + again - hidden


def product_of(tile: WarpgroupTile, width: int, read_bytes: int, rates: Rates) -> float:
    """Cycles of one warpgroup's product, of which B lies in shared memory."""
    multiply_adds = GROUP_ROWS * tile.keys * width
    operand_bytes = BYTES * tile.keys * width + read_bytes
    return max(PRODUCT * multiply_adds / rates.tensor_flops, operand_bytes / rates.smem_bytes)


def _held(q_bytes: int, rates: Rates) -> Part:
    """One warpgroup's Q: the others' comes beside its first product."""
    return Part("Q into registers", "held", q_bytes / rates.smem_bytes + 2 * rates.smem_latency, SMEM)
