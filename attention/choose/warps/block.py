"""How long a block stays on an SM whose warps queue at the units, and what it is made of.

A round is one slice of keys of one warp: its products, exponentials and arithmetic are asked of its scheduler, its
fragments of the SM's shared memory. What comes once for a block or a tile is spread over its slices.

Arithmetic takes turns with products at a scheduler, whosever they are, and exponentials run beside them but for what a
probe saw wait (mma_sync_beside_ex2, mma_sync_beside_ffma). A warp hides its own exponentials behind its own products,
and the reading of fragments that it fetches ahead; what a step with hidden keys does, it does in turn.
"""

import math
from collections.abc import Callable, Iterator
from functools import lru_cache, partial
from typing import NamedTuple

from attention.choose.coefficients import BYTES, COPY, FRAGMENT, LANES, PRODUCT, SCHEDULERS, of
from attention.choose.queues import Station, round_of, stay
from attention.choose.rates import (
    DRAM,
    DRAM_LATENCY,
    EX2,
    EX2_LATENCY,
    FFMA,
    FFMA_LATENCY,
    L2,
    L2_LATENCY,
    SMEM,
    SMEM_LATENCY,
)
from attention.choose.scores import ScoreCost
from attention.tile import WarpTile

TENSOR, LATENCY = "mma_bf16_flops_per_clk_sm", "mma_bf16_latency_cycles"
# How much of the shorter one hides beside products: of the same warp, and of others on its scheduler.
EX2_BESIDE = "mma_bf16_beside_ex2_overlap_ratio"
EX2_BESIDE_OTHERS = "mma_bf16_beside_ex2_other_warps_overlap_ratio"
FFMA_BESIDE_OTHERS = "mma_bf16_beside_ffma_other_warps_overlap_ratio"


class Rates(NamedTuple):
    """Of one SM, per clock, L2's and DRAM's bandwidth shared evenly; latencies in cycles, and shares that hide."""

    tensor_flops: float
    ex2: float
    ffma: float
    smem_bytes: float
    l2_bytes: float
    dram_bytes: float
    product_latency: float
    ex2_latency: float
    ffma_latency: float
    smem_latency: float
    l2_latency: float
    dram_latency: float
    ex2_beside: float
    ex2_beside_others: float
    ffma_beside_others: float


class Part(NamedTuple):
    """Cycles of a block that rest on a constant of the profile; parts follow one another."""

    term: str
    cycles: float
    constant: str


class Work(NamedTuple):
    """What a block does: `slices` of keys, of which `hidden` have a key that some row does not see.

    `readers`: blocks that read the same K and V, of which one brings them from DRAM. `lines` of L2 are touched by the
    copying of a key, its K and its V, and sectors a second time. `cold`: the share of all blocks that begin together,
    for which nobody has brought a mask.
    """

    slices: float
    hidden: float
    readers: int
    lines: float
    cold: float = 0.0


class Block(NamedTuple):
    """A block's stay on an SM, in cycles, and what tells its parts: a choice compares stays, and explains one."""

    cycles: float
    parts: Callable[[], tuple[Part, ...]]


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


@lru_cache(maxsize=2048)
def block_of(tile: WarpTile, cost: ScoreCost, work: Work, resident: int, rates: Rates) -> Block:
    """A block's stay where so many are resident on the SM."""
    asked = _asked(tile, cost, work, resident, rates)
    waits = _waits(tile, cost, work, resident, rates)
    thinking = sum(waits) / work.slices - sum([each.hidden for each in asked])
    found = round_of([each.station for each in asked], thinking)
    late = _late(tile, work, resident, rates, found)
    return Block(found * work.slices + late, partial(_parts, asked, waits, found, work.slices, late))


def _parts(
    asked: tuple[Asked, ...], waits: tuple[float, ...], found: float, slices: float, late: float
) -> tuple[Part, ...]:
    """Of a block whose slices take a round that was `found`."""
    served = [part for each in asked for part in each.parts(found, slices)]
    waited = [Part(name, cycles, constant) for (name, constant), cycles in zip(WAITS, waits, strict=True)]
    each_of_it = *served, *waited, Part("loads of a tile ahead", late, DRAM_LATENCY)
    return tuple([each for each in each_of_it if each.cycles])


def _of_a_tile(tile: WarpTile) -> float:
    """Cycles behind the barrier in which warps that share rows ask for a tile ahead, beside no product of their own."""
    if tile.key_warps == 1:
        return 0.0
    copies = BYTES * tile.keys * (tile.head_dim + tile.value_dim) / COPY / tile.threads
    return of("tile_instructions") + of("copy_instructions") * copies


def _joined(tile: WarpTile, rates: Rates) -> tuple[float, float]:
    """What warps that share rows take to bring what they have together, half of them at a time: waits, instructions."""
    times, words = math.log2(tile.key_warps), tile.value_dim / FRAGMENT * 2 + 1
    return times * of("join_trips") * rates.smem_latency, times * of("join_instructions") * words


def instructions_of(tile: WarpTile) -> float:
    """Cycles before a block's first loads, and behind its last keys, in which it finds its place."""
    return of("block_instructions") + (of("shared_block_instructions") if tile.threads else 0.0)


def _late(tile: WarpTile, work: Work, resident: int, rates: Rates, found: float) -> float:
    """Cycles that tiles of keys, asked for some tiles ahead, come later than the one before each is done with."""
    slices = tile.keys / tile.step_keys
    first = 1 / work.readers  # of those who read it, who brings it from DRAM
    latency = first * rates.dram_latency + (1 - first) * rates.l2_latency
    load = latency + BYTES * tile.keys * (tile.head_dim + tile.value_dim) * resident / rates.l2_bytes
    further = max(0.0, work.slices / slices - 1)
    under_way = (
        found * slices * (tile.stages - 1) - of("turn_trips") * rates.l2_latency
    )  # until the barrier that waits for it
    return further * max(0.0, load - under_way)


def _asked(tile: WarpTile, cost: ScoreCost, work: Work, resident: int, rates: Rates) -> tuple[Asked, ...]:
    alone = _alone_bytes(tile, work) / rates.dram_bytes / work.slices
    once = Asked(Station("first loads and out", alone, resident, DRAM), 0.0)
    return (*_of_a_slice(tile, cost, work.hidden / work.slices, work.lines, resident, rates), once)


@lru_cache(maxsize=2048)  # blocks of any number of slices ask alike
def _of_a_slice(
    tile: WarpTile, cost: ScoreCost, hidden: float, lines: float, resident: int, rates: Rates
) -> tuple[Asked, ...]:
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
    return (
        Asked(Station("products on mma.sync", products + in_turn + others, of_scheduler, TENSOR), others, in_turn),
        Asked(
            Station("exponentials", cost.special * one, of_scheduler, EX2), seen * rates.ex2_beside * min(one, products)
        ),
        Asked(Station("operands from shared memory", shared, warps, SMEM), seen * min(shared, products)),
    )


def _alone_bytes(tile: WarpTile, work: Work) -> float:
    """What a block reads before its first product, and writes behind its last."""
    kv = tile.keys * (tile.head_dim + tile.value_dim) / work.readers
    return BYTES * (tile.rows * (tile.head_dim + tile.value_dim) + kv)


class Waits(NamedTuple):
    """Of a slice, in cycles: for its products and its fragments, and for these where a key is hidden from a row.

    `mask_trips` are those for a mask, and `hidden_trips` those to shared memory where a key is hidden. `ends` are what
    a block of any number of slices takes behind its last one: the last of WAITS.
    """

    products: float
    fragments: float
    late: float
    late_hidden: float
    hidden_trips: float
    mask_trips: float
    ends: tuple[float, float, float]


@lru_cache(maxsize=2048)  # likewise
def _waits_of_a_slice(tile: WarpTile, waiting_loads: float, resident: int, rates: Rates) -> Waits:
    both, panels = tile.head_dim + tile.value_dim, tile.warp_rows / FRAGMENT
    fragments = tile.slice_keys / FRAGMENT * both / FRAGMENT
    # Of the products of one fragment, two of m16n8k16 for each panel of rows.
    one = panels * PRODUCT * FRAGMENT**3 / (rates.tensor_flops / SCHEDULERS)
    ahead = max(tile.ahead, of("fragments_ahead")) if tile.q_in_registers else tile.ahead
    late = max(0.0, rates.smem_latency - ahead * one)
    late_hidden = max(0.0, rates.smem_latency - one * (of("shared_fragments_ahead") if tile.key_warps > 1 else 1))
    # Scores of 8 keys are a chain of products over the head dim, and those of a narrow slice are too few to fill it.
    chained = tile.head_dim / FRAGMENT * max(0.0, rates.product_latency - tile.slice_keys / FRAGMENT * one)
    stored = panels * (of("stored") * tile.value_dim + of("stored_at_least")) * resident * tile.warps / SCHEDULERS
    # Rows of a panel are asked for together. Who is first brings them from DRAM, and heads that share them wait alike.
    masks = math.ceil(waiting_loads * FRAGMENT * tile.slice_keys / LANES) * panels
    return Waits(
        of("slice_products") * rates.product_latency + chained,
        fragments,
        late,
        late_hidden,
        of("hidden_trips") * panels,
        masks,
        (stored, *_joined(tile, rates)),
    )


# Of a whole block, what no unit is asked for, with the constants that it rests on.
WAITS = (
    ("waits for products", LATENCY),
    ("waits for shared memory", SMEM_LATENCY),
    ("waits for fragments", SMEM_LATENCY),
    ("waits for exponentials", EX2_LATENCY),
    ("waits for arithmetic", FFMA_LATENCY),
    ("mask from L2", L2_LATENCY),
    ("turns of tiles", L2_LATENCY),
    ("first K and V from L2", L2),
    ("begin of a block", DRAM_LATENCY),
    ("instructions of a block", ""),
    ("instructions of tiles", ""),
    ("out from registers", ""),
    ("waits to join warps", SMEM_LATENCY),
    ("warps are joined", ""),
)


def _waits(tile: WarpTile, cost: ScoreCost, work: Work, resident: int, rates: Rates) -> tuple[float, ...]:
    """Cycles of each of WAITS."""
    slices, of_slice = work.slices, _waits_of_a_slice(tile, cost.waiting_loads, resident, rates)
    trips = of("slice_trips") * slices + of_slice.hidden_trips * work.hidden + of("block_trips")
    both = tile.head_dim + tile.value_dim
    tiles = slices * tile.step_keys / tile.keys
    together = of("barrier_waits") * tiles if resident == 1 and tile.warps > SCHEDULERS else 0.0
    latency = rates.l2_latency + work.cold * (rates.dram_latency - rates.l2_latency)
    return (
        of_slice.products * slices,
        trips * rates.smem_latency,
        of_slice.fragments * ((slices - work.hidden) * of_slice.late + work.hidden * of_slice.late_hidden),
        of("exponential_waits") * slices * rates.ex2_latency,
        of("slice_arithmetic") * slices * rates.ffma_latency,
        of_slice.mask_trips * (slices + together) * latency,
        of("turn_trips") * tiles * rates.l2_latency,
        BYTES * tile.keys * both * (1 - 1 / work.readers) * resident / rates.l2_bytes,
        rates.dram_latency,
        instructions_of(tile),
        tiles * _of_a_tile(tile),
        *of_slice.ends,
    )
