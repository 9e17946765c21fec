"""How long a block stays on an SM whose warps queue at the units, and what it is made of.

A round is one slice of keys of one warp: its products, exponentials and arithmetic are asked of its scheduler, its
fragments of the SM's shared memory. What comes once for a block or a tile is spread over its slices.

Arithmetic takes turns with products at a scheduler, whosever they are, and exponentials run beside them but for what a
probe saw wait (mma_sync_beside_ex2, mma_sync_beside_ffma). A warp hides its own exponentials behind its own products,
and the reading of fragments that it fetches ahead, but not the copies of the next tile, which stand before the first of
them where all warps copy; what a step with hidden keys does, it does in turn.
"""

import math
from collections.abc import Callable, Iterator
from functools import lru_cache, partial
from typing import NamedTuple

from attention.choose.coefficients.table import BYTES, COPY, LANES, PRODUCT, SCHEDULERS, of
from attention.choose.queues import Station, round_among, stay, stay_among
from attention.choose.rates import DRAM, DRAM_LATENCY, EX2, FFMA, SMEM
from attention.choose.scores import ScoreCost
from attention.choose.warps.waits import WAITS, waits_of, waits_of_slices
from attention.choose.warps.work import TENSOR, Part, Rates, Work
from attention.tile import WarpTile

# How much of the shorter one hides beside products: of the same warp, and of others on its scheduler.
EX2_BESIDE = "mma_bf16_beside_ex2_overlap_ratio"
EX2_BESIDE_OTHERS = "mma_bf16_beside_ex2_other_warps_overlap_ratio"
FFMA_BESIDE_OTHERS = "mma_bf16_beside_ffma_other_warps_overlap_ratio"


class Block(NamedTuple):
    """A block's stay on an SM, in cycles, and what tells its parts: a choice compares stays, and explains one.

    `entered` is spent before its first keys have come, `ended` behind its last ones.
    """

    cycles: float
    entered: float
    ended: float
    parts: Callable[[], tuple[Part, ...]]

    def last_tile(self, tiles: float) -> float:
        """Cycles behind the coming of the last of so many tiles: no load is under way beside it."""
        return (self.cycles - self.entered - self.ended) / tiles + self.ended


class Asked(NamedTuple):
    """What a slice asks of a station, how much of it the warp hides itself, and how much of it is arithmetic."""

    station: Station
    hidden: float
    arithmetic: float = 0.0

    def parts(self, found: float, slices: float) -> Iterator[Part]:
        name, demand, _, constant = self.station
        if demand:
            each = (stay(self.station, found) - self.hidden) * slices
            yield Part(name, each * (1 - self.arithmetic / demand), constant)
            if self.arithmetic:
                yield Part("arithmetic", each * self.arithmetic / demand, FFMA)


class Slice(NamedTuple):
    """What a slice asks of each station, how much of it all its warp hides, and each demand with the others' number."""

    asked: tuple[Asked, ...]
    hidden: float
    queue: tuple[tuple[float, float], ...]


@lru_cache(maxsize=2048)
def block_of(tile: WarpTile, cost: ScoreCost, work: Work, resident: int, rates: Rates) -> Block:
    """A block's stay where so many are resident on the SM."""
    slices = work.slices
    asked, hidden, queue = _of_a_slice(tile, cost, work.hidden / slices, work.lines, resident, rates)
    within, entering, ending = waits_of(tile, cost, work, resident, rates)
    waits, ended = (*within, *entering, *ending), sum(ending)
    first, others = _first_loads(tile, work, resident, rates)
    once = first / slices
    found = round_among((*queue, (once, others)), sum(waits) / slices - hidden)
    entered = stay_among(once, others, found) * slices + sum(entering)
    # Of blocks that begin together one with an SM to itself has nothing beside a tile but the next one's loads. Others
    # fill each other's waits, and in waves what one leaves stands beside the next one's loads.
    beside_loads = entered + ended if resident == 1 and work.beside else 0.0
    late = _late(tile, work, resident, rates, found - beside_loads / slices)
    parts = partial(_parts, asked, once, others + 1, waits, found, slices, late)
    return Block(found * slices + late, entered, ended, parts)


@lru_cache(maxsize=2048)
def least_round(tile: WarpTile, cost: ScoreCost, rates: Rates) -> float:
    """Cycles that a slice takes at least: of a block with an SM to itself, which copies no keys."""
    hidden = float(tile.takes_maxima)
    _, hides, queue = _of_a_slice(tile, cost, hidden, 0.0, 1, rates)
    return sum([demand for demand, _ in queue]) - hides + waits_of_slices(tile, cost, hidden, rates)


def _parts(
    asked: tuple[Asked, ...],
    once: float,
    customers: int,
    waits: tuple[float, ...],
    found: float,
    slices: float,
    late: float,
) -> tuple[Part, ...]:
    """Of a block whose slices take a round that was `found`."""
    alone = Asked(Station("first loads and out", once, customers, DRAM), 0.0)
    served = [part for each in (*asked, alone) for part in each.parts(found, slices)]
    waited = [Part(name, cycles, constant) for (name, constant), cycles in zip(WAITS, waits, strict=True)]
    each_of_it = *served, *waited, Part("loads of a tile ahead", late, DRAM_LATENCY)
    return tuple([each for each in each_of_it if each.cycles])


def _late(tile: WarpTile, work: Work, resident: int, rates: Rates, found: float) -> float:
    """Cycles that tiles of keys, asked for some tiles ahead, come later than the one before each is done with."""
    slices = tile.keys / tile.step_keys
    first = 1 / work.readers  # of those who read it, who brings it from DRAM
    latency = first * rates.dram_latency + (1 - first) * rates.l2_latency
    size = BYTES * tile.keys * (tile.head_dim + tile.value_dim) * resident
    transfer = size / rates.l2_bytes
    if resident == 1:
        # Blocks that have an SM each ask in step, and DRAM brings all of it between two barriers: of 128 keys at head
        # dim 64 a tile came 2190 cycles after it was asked for on 128 SMs (H200), of which 1690 are its bytes.
        transfer = max(transfer, first * size / rates.dram_bytes)
    load = latency + transfer
    together = tile.stages - 1 if work.beside else 1  # come before the first barrier
    further = max(0.0, work.slices / slices - together)
    # Until the barrier that waits for it, of so many tiles that follow each other.
    return further * max(0.0, load / (tile.stages - 1) - found * slices)


@lru_cache(maxsize=2048)  # blocks of any number of slices ask alike
def _of_a_slice(tile: WarpTile, cost: ScoreCost, hidden: float, lines: float, resident: int, rates: Rates) -> Slice:
    """Where a share of the slices is `hidden`."""
    warps = resident * tile.warps
    # A block's first warp is on every block's first scheduler, and so on: few with rows share what few have.
    of_scheduler = resident * math.ceil(tile.warps / SCHEDULERS)
    scores, both = tile.scores, tile.head_dim + tile.value_dim
    seen = 1 - hidden
    products = PRODUCT * scores * both / (rates.tensor_flops / SCHEDULERS)
    one = scores / (rates.ex2 / SCHEDULERS)  # exponential of each score, which p V hides; softcap's come before it
    arithmetic = cost.arithmetic + hidden * of("hidden_arithmetic")
    # A slice that every row sees takes no maximum (rows.cuh), but what features ask for stays.
    integers = cost.integers + cost.maxima - of("maxima") + of("conversions") + hidden * cost.first
    in_turn = (arithmetic / rates.ffma + integers / of("alu_per_clk_sm")) * scores * SCHEDULERS
    in_turn *= 1 - rates.ffma_beside_others
    others = (1 - rates.ex2_beside_others) * cost.special * one  # what its exponentials take of others' products
    q_bytes = 0 if tile.q_in_registers else BYTES * tile.warp_rows * tile.head_dim
    kv_bytes = BYTES * tile.slice_keys * both
    copied = of("copied_lines") * lines * tile.step_keys / tile.warps
    masked = of("mask_wavefronts") * scores if cost.waiting_loads else 0.0
    # Each warp reads K and V for itself, and copies its share of a tile.
    shared = (kv_bytes + q_bytes) / rates.smem_bytes + copied + masked
    before = 0.0 if resident > 1 and _few_copy(tile) else copied
    asked = (
        Asked(Station("products on mma.sync", products + in_turn + others, of_scheduler, TENSOR), others, in_turn),
        Asked(
            Station("exponentials", cost.special * one, of_scheduler, EX2), seen * rates.ex2_beside * min(one, products)
        ),
        Asked(Station("operands from shared memory", shared, warps, SMEM), seen * min(shared - before, products)),
    )
    queue = tuple((each.station.demand, each.station.customers - 1) for each in asked if each.station.demand)
    return Slice(asked, sum([each.hidden for each in asked]), queue)


def _few_copy(tile: WarpTile) -> bool:
    """Whether some warps of a block have all copies of a tile, and the others go ahead with products.

    Where a row is 32 bytes more than a multiple of 64, two of four warps have those of 32 keys. All four took 2 to 5 %
    more in the mean, and two of four with 64 keys 4 to 5 % less (H200, copying_warps.csv).
    """
    return tile.pipelined and tile.key_warps == 1 and tile.keys * tile.key_span_bytes < COPY * LANES * tile.warps


def _first_loads(tile: WarpTile, work: Work, resident: int, rates: Rates) -> tuple[float, int]:
    """Cycles that a block's first loads take DRAM, and how many blocks queue there with theirs.

    Blocks that begin together wait together, each for what the mean one asks for. All tiles that they ask for before
    their first barrier come at once: of 96, 132 and 264 blocks the first tile came 1950, 2650 and 4300 cycles behind
    its request with one tile ahead, and 3190, 4220 and 6400 with two; of eight blocks, whose ports bring one tile after
    the other, no later (H200, decode_stamps.csv).
    """
    alone = _alone_bytes(tile, work)
    if not work.beside:
        return alone / rates.dram_bytes, resident - 1
    of_key = BYTES * (tile.head_dim + tile.value_dim) / work.readers
    keys = min((tile.stages - 1) * tile.keys, work.mean * tile.step_keys)
    at_once = alone + of_key * (keys - min(tile.keys, work.slices * tile.step_keys))
    return work.beside * max(alone / rates.dram_bytes, at_once / rates.dram_share), 0


def _alone_bytes(tile: WarpTile, work: Work) -> float:
    """What a block reads before its first product, and writes behind its last: of rows that are used, and of keys."""
    keys, rows = min(tile.keys, work.slices * tile.step_keys), tile.used_rows or tile.rows
    return BYTES * (tile.head_dim + tile.value_dim) * (rows + keys / work.readers)
