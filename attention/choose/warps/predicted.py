"""A kernel of warps as seconds: the stays of the busiest SM's blocks over one clock (choose.one_clock)."""

import math
from collections.abc import Sequence
from functools import lru_cache, partial
from operator import attrgetter
from typing import NamedTuple

from attention.choose.coefficients import BYTES, PRODUCT, SLOT, SYSTEM_BYTES, of
from attention.choose.lengths import UNKNOWN, Lengths
from attention.choose.one_clock import BY_ROWS, IN_STEP, call_of, clock_under, code_of, dram_of, l2_of
from attention.choose.prediction import Efficiency, Prediction, Term
from attention.choose.rates import (
    BANK_TURN,
    DRAM,
    DRAM_LATENCY,
    EX2,
    EX2_LATENCY,
    FFMA,
    FFMA_LATENCY,
    KEPT_MACHINES,
    L2,
    L2_LATENCY,
    L2_SIZE,
    SMEM,
    SMEM_LATENCY,
    Machine,
    machine_of,
)
from attention.choose.scores import ScoreCost, cost_of
from attention.choose.shares import rows_read
from attention.choose.unlike import seconds_of_all
from attention.choose.warps.block import EX2_BESIDE, EX2_BESIDE_OTHERS, FFMA_BESIDE_OTHERS, Block, block_of
from attention.choose.warps.dealt import Dealt, Stay, dealt
from attention.choose.warps.gathered import added, bytes_of, combined, left
from attention.choose.warps.waits import instructions_of
from attention.choose.warps.work import LATENCY, TENSOR, Part, Rates
from attention.problem import AttentionProblem
from attention.tile import WarpTile
from microbench.machine.arch import by_name
from microbench.results.profile import Profile

BURST = "mma_bf16_burst_flops_per_s"
CYCLES = attrgetter("cycles")
# In the order of Rates.
NEEDED = (
    *(TENSOR, EX2, FFMA, SMEM, L2, DRAM),
    *(LATENCY, EX2_LATENCY, FFMA_LATENCY),
    *(SMEM_LATENCY, L2_LATENCY, DRAM_LATENCY),
    *(EX2_BESIDE, EX2_BESIDE_OTHERS, FFMA_BESIDE_OTHERS),
)


class Brought(NamedTuple):
    """What bringing parts together takes of each block, and of a tile's last one, in parts and in cycles.

    An SM has so many `times` such a last one.
    """

    leaves: tuple[Part, ...]
    adds: tuple[Part, ...]
    times: float
    left: float
    added: float


WHOLE = Brought((), (), 1.0, 0, 0)


def can(profile: Profile) -> bool:
    """Whether the profile has every constant that this model needs: few published ones have all latencies."""
    return _has_all(machine_of(profile))


@lru_cache(maxsize=KEPT_MACHINES)
def _has_all(machine: Machine) -> bool:
    return all(name in machine.values for name in (*NEEDED, BURST))


def predicted(
    profile: Profile,
    problem: AttentionProblem,
    tile: WarpTile,
    efficiency: Efficiency,
    lengths: Lengths = UNKNOWN,
    l2_written: bool = False,
) -> Prediction:
    """A call, launch and all. Raises Unpredicted where the profile lacks a constant."""
    machine = machine_of(profile)
    tile, cost = _resident(tile, profile.arch), cost_of(problem)
    share = dealt(problem, tile, profile.sm_count, lengths)
    rates = _rates(machine, min(profile.sm_count, share.blocks))
    blocks, busy, rounds = _blocks(tile, cost, share, rates)
    brought = _brought(machine, problem, tile, share, rates)
    empty = Part(
        "empty blocks", of("empty_block_instructions") + of("empty_block_trips") * rates.l2_latency, L2_LATENCY
    )
    cycles = busy + brought.left * rounds + brought.added * brought.times + empty.cycles * share.empty
    flops = PRODUCT * share.slices * tile.warps * tile.scores * (tile.head_dim + tile.value_dim)
    clock = clock_under(machine, flops, rates.tensor_flops, BURST, cycles)
    at_once = min(1.0, profile.sm_count * tile.blocks / share.blocks)
    missed = IN_STEP if share.blocks <= profile.sm_count else BY_ROWS
    dram = dram_of(machine, problem, rows_read(problem, lengths), at_once, missed, l2_written)
    spans = tile.key_span_bytes, tile.value_span_bytes
    memory = l2_of(machine, problem, share.slices * tile.step_keys, spans, lengths), dram
    in_flight = round(of("block_loads")) * tile.stages * blocks[0][0].resident
    code = code_of(machine, of("warp_code_lines") + of("warp_dim_lines") * (tile.head_dim + tile.value_dim), clock)
    last, its_block = blocks[-1]
    last_tile = its_block.last_tile(max(1.0, last.work.slices * tile.step_keys / tile.keys))
    # Between two blocks of a place none loads there: what one leaves, and what the next does before its first loads.
    between = max(1.0, rounds) * (instructions_of(tile) + brought.left)
    if share.unlike:
        at_least: Term | None = _unlike(machine, tile, cost, share, rates, clock)
    else:  # a wave of like blocks ends at once, and the first loads of the next are on their way alone
        between += rates.dram_latency * min(1.0, max(0.0, rounds - 1.0))
        at_least = _waves(profile.sm_count, tile, cost, share, rates, clock, dram)
    alone = (between + last_tile + brought.added) / clock + code.seconds
    terms = partial(_terms, machine, blocks, brought, rounds, (empty, share.empty), clock, code)
    busy_seconds = cycles / clock + code.seconds
    return call_of(machine, problem, terms, memory, busy_seconds, efficiency, in_flight, alone, at_least, tile.kernels)


@lru_cache(maxsize=2048)
def _resident(tile: WarpTile, arch: str) -> WarpTile:
    """With no more blocks than shared memory of an SM holds, each with 1 KiB of the system's (CUDA C++ guide)."""
    limits = by_name(arch).limits
    if not tile.smem_bytes or limits is None:
        return tile
    return tile._replace(blocks=max(1, min(tile.blocks, limits.smem_bytes // (tile.smem_bytes + SYSTEM_BYTES))))


def _blocks(
    tile: WarpTile, cost: ScoreCost, share: Dealt, rates: Rates
) -> tuple[list[tuple[Stay, Block]], float, float]:
    """The busiest SM's blocks, their cycles, no less than the longest one's alone, and how many follow one another."""
    blocks, cycles, rounds = [], 0.0, 0.0
    for stay in share.stays:
        if stay.times:
            block = block_of(tile, cost, stay.work, stay.resident, rates)
            blocks.append((stay, block))
            cycles += block.cycles * stay.times
            rounds += stay.times
    longest = share.at_least
    if blocks and blocks[-1][0].work is longest.work:
        return blocks, cycles, rounds
    alone = block_of(tile, cost, longest.work, longest.resident, rates)
    return (blocks, cycles, rounds) if cycles >= alone.cycles else ([(longest, alone)], alone.cycles, longest.times)


def _waves(
    sm_count: int, tile: WarpTile, cost: ScoreCost, share: Dealt, rates: Rates, clock: float, dram: Term
) -> Term | None:
    """What waves of like blocks take at least: those of the last one, which are few, ask DRAM for less than it gives.

    320 blocks of 1500 keys at head dim 64 took an H200 39.9 us where 264 run at once, and 34.4 where all do (use-23).
    """
    places = sm_count * tile.blocks
    rest = share.blocks % places
    if share.blocks <= places or not rest:
        return None
    last = block_of(tile, cost, share.stays[-1].work, math.ceil(rest / sm_count), rates).cycles / clock
    part = dram.seconds * rest / share.blocks
    return Term("waves of like blocks", "memory", dram.seconds + max(0.0, last - part), dram.constant, dram.rate)


def _unlike(machine: Machine, tile: WarpTile, cost: ScoreCost, share: Dealt, rates: Rates, clock: float) -> Term:
    """What blocks of unequal keys take at least."""
    whole = share.at_least.work
    half = whole._replace(slices=whole.slices / 2, hidden=whole.hidden / 2)
    further = block_of(tile, cost, whole, 1, rates).cycles - block_of(tile, cost, half, 1, rates).cycles
    places, dram = machine.profile.sm_count * tile.blocks, machine.value(DRAM)
    shared = BYTES * tile.step_keys * (tile.head_dim + tile.value_dim) / whole.readers / dram
    seconds = seconds_of_all(share.unlike, places, further / half.slices / clock, shared)
    return Term("blocks of unequal keys", "memory", seconds, DRAM, dram)


def _terms(
    machine: Machine,
    blocks: Sequence[tuple[Stay, Block]],
    brought: Brought,
    rounds: float,
    empty: tuple[Part, float],
    clock: float,
    code: Term,
) -> list[Term]:
    """Parts so many times over, those of one name together."""
    beside = (brought.leaves, rounds), (brought.adds, brought.times), ((empty[0],), empty[1])
    groups = [*((block.parts(), stay.times) for stay, block in blocks), *beside]
    cycles: dict[str, float] = {}
    constants: dict[str, str] = {}
    for parts, times in groups:
        for name, each, constant in parts if times else ():
            if name in cycles:
                cycles[name] += each * times
            else:
                cycles[name], constants[name] = each * times, constant
    value = machine.values.get
    made = [
        Term(name, name, all_of_it / clock, constants[name], value(constants[name], 0.0))
        for name, all_of_it in cycles.items()
    ]
    return [*made, code]


def _brought(machine: Machine, problem: AttentionProblem, tile: WarpTile, share: Dealt, rates: Rates) -> Brought:
    parts = max(1, round(share.blocks / share.tiles))
    if parts == 1:
        return WHOLE
    rows = min(tile.rows, problem.seq_q * tile.group)
    # Of all parts; the L2 holds them where the profile does not say how much it holds.
    beyond = max(0.0, 1 - machine.values.get(L2_SIZE, math.inf) / (bytes_of(tile, rows) * share.blocks))
    leaves, sms = left(tile, rows, beyond, rates), machine.profile.sm_count
    if tile.kernels > 1:
        adds, times = combined(tile, share.tiles * rows / sms, parts, beyond, rates), 1.0
    else:
        adds = added(tile, rows, parts, beyond, min(1.0, share.tiles / sms), rates)
        times = max(1.0, share.tiles / (sms * tile.blocks))
    return Brought(leaves, adds, times, sum(map(CYCLES, leaves)), sum(map(CYCLES, adds)))


@lru_cache(maxsize=2048)
def _rates(machine: Machine, busy: int) -> Rates:
    """L2 and DRAM are shared by so many SMs, of which none takes more than its port."""
    values = dict(zip(Rates._fields[: len(NEEDED)], map(machine.value, NEEDED), strict=True))
    per_clock = busy * machine.needed_clock_hz
    shared = {name: min(SLOT, values[name] / per_clock) for name in ("l2_bytes", "dram_bytes")}
    return Rates(**values | shared, turn_latency=machine.values.get(BANK_TURN, 0.0))
