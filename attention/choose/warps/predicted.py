"""A kernel of warps as seconds: the stays of the busiest SM's blocks over one clock (choose.one_clock)."""

import math
from collections.abc import Sequence
from functools import lru_cache, partial
from operator import attrgetter
from typing import NamedTuple

from attention.choose.coefficients.table import BYTES, PRODUCT, SLOT, SYSTEM_BYTES, of
from attention.choose.lengths import UNKNOWN, Lengths
from attention.choose.one_clock import BY_ROWS, IN_STEP, Loads, call_of, clock_under, code_of, dram_of, l2_of
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
from attention.choose.warps.at_least import of_unlike
from attention.choose.warps.block import EX2_BESIDE, EX2_BESIDE_OTHERS, FFMA_BESIDE_OTHERS, Block, block_of
from attention.choose.warps.dealt import Dealt, Stay, dealt
from attention.choose.warps.gathered import added, bytes_of, combined, left
from attention.choose.warps.waits import instructions_of
from attention.choose.warps.work import LATENCY, TENSOR, Part, Rates
from attention.choose.waves import of_waves
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

    def over(self, rounds: float) -> tuple[tuple[tuple[Part, ...], float], ...]:
        """The parts, and how often they come where so many blocks follow one another."""
        return (self.leaves, rounds), (self.adds, self.times)


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
    rates = rates_of(machine, min(profile.sm_count, share.blocks))
    blocks, busy, rounds = _blocks(tile, cost, share, rates)
    brought = _brought(machine, problem, tile, share, rates)
    once = (*brought.over(rounds), *_between(tile, share, rounds, rates))
    cycles = busy + sum([sum(map(CYCLES, parts)) * times for parts, times in once])
    flops = PRODUCT * share.slices * tile.warps * tile.scores * (tile.head_dim + tile.value_dim)
    clock = clock_under(machine, flops, rates.tensor_flops, BURST, cycles)
    at_once = min(1.0, share.places / share.blocks)
    lone = share.blocks <= profile.sm_count
    missed = IN_STEP if lone and _keep_step(machine, problem, tile, share) else BY_ROWS
    dram = dram_of(machine, problem, rows_read(problem, lengths), at_once, missed, l2_written)
    spans = tile.key_span_bytes, tile.value_span_bytes
    keys = share.slices * tile.step_keys * share.at_least.work.loaded
    memory = l2_of(machine, problem, keys, spans, lengths), dram
    loads = Loads(round(of("block_loads")) * tile.stages * blocks[0][0].resident, lone)
    code = code_of(machine, _code_lines_of(tile, share.parts), clock)
    last, its_block = blocks[-1]
    last_tile = its_block.last_tile(max(1.0, last.work.slices * tile.step_keys / tile.keys))
    # Between two blocks of a place none loads there: what one leaves, and what the next does before its first loads.
    between = max(1.0, rounds) * (instructions_of(tile) + brought.left)
    if share.alike and rounds > 1:  # all of a wave have their last tile together, and the next ones load behind it
        between += (rates.dram_latency + last_tile) * min(1.0, rounds - 1)
    alone = (between + last_tile + brought.added) / clock + code.seconds
    at_least = None
    if share.unlike:
        at_least = of_unlike(machine, tile, cost, share, rates, clock)
    elif share.alike:
        at_least = of_waves(share.blocks, share.places, its_block.cycles / clock - alone, dram)
    terms = partial(_terms, machine, blocks, once, clock, code)
    busy_seconds = cycles / clock + code.seconds
    return call_of(machine, problem, terms, memory, busy_seconds, efficiency, loads, alone, at_least, tile.kernels)


def _between(tile: WarpTile, share: Dealt, rounds: float, rates: Rates) -> tuple[tuple[tuple[Part, ...], float], ...]:
    """What comes between blocks of a place: those without keys, and turns of those that may share theirs."""
    empty = (
        Part("empty blocks", of("empty_block_instructions"), ""),
        Part("turns of empty blocks", of("empty_block_trips") * rates.l2_latency, L2_LATENCY),
    )
    turn = Part("turns of blocks", of("block_turn_trips") * rates.l2_latency, L2_LATENCY)
    own_rows = tile.threads > 0 and tile.key_warps == 1
    return (empty, share.empty), ((turn,), max(0.0, rounds - 1) if own_rows else 0.0)


@lru_cache(maxsize=2048)
def _resident(tile: WarpTile, arch: str) -> WarpTile:
    """With no more blocks than shared memory of an SM holds, each with 1 KiB of the system's (CUDA C++ guide)."""
    limits = by_name(arch).limits
    if not tile.smem_bytes or limits is None:
        return tile
    return tile._replace(blocks=max(1, min(tile.blocks, limits.smem_bytes // (tile.smem_bytes + SYSTEM_BYTES))))


def _keep_step(machine: Machine, problem: AttentionProblem, tile: WarpTile, share: Dealt) -> bool:
    """Whether blocks with an SM each ask for neighbouring rows at about the same time: few loads are under way."""
    longest = share.at_least.work
    keys = min((tile.stages - 1) * tile.keys, longest.slices * tile.step_keys)
    under_way = share.blocks * BYTES * keys * (problem.head_dim + problem.head_dim_v) / longest.readers
    return under_way <= of("step_share") * machine.values.get(L2_SIZE, math.inf)


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
    if share.alike:
        return blocks, cycles, rounds
    longest = share.at_least
    alone = block_of(tile, cost, longest.work, longest.resident, rates)
    return (blocks, cycles, rounds) if cycles >= alone.cycles else ([(longest, alone)], alone.cycles, longest.times)


def _terms(
    machine: Machine,
    blocks: Sequence[tuple[Stay, Block]],
    beside: Sequence[tuple[Sequence[Part], float]],
    clock: float,
    code: Term,
) -> list[Term]:
    """Parts so many times over, those of one name together."""
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
    if share.parts == 1:
        return WHOLE
    rows = min(tile.rows, problem.seq_q * tile.group)
    resident = max([stay.resident for stay in share.stays])
    # Of all parts; the L2 holds them where the profile does not say how much it holds.
    beyond = max(0.0, 1 - machine.values.get(L2_SIZE, math.inf) / (bytes_of(tile, rows) * share.blocks))
    leaves, sms = left(tile, rows, beyond, resident, rates), machine.profile.sm_count
    # Of many tiles of rows the mean counts, and of few the one with most parts, which ends last.
    parts = max(1, round(share.blocks / share.tiles)) if share.tiles > share.places else share.parts
    if tile.kernels > 1:
        adds, times = combined(tile, share.tiles * rows / sms, parts, beyond, rates), 1.0
    else:
        adds = added(tile, rows, parts, beyond, min(share.tiles / sms, resident), rates)
        times = max(1.0, share.tiles / share.places)
    return Brought(leaves, adds, times, sum(map(CYCLES, leaves)), sum(map(CYCLES, adds)))


def _code_lines_of(tile: WarpTile, parts: int) -> float:
    """Lines of code that a call of so many parts runs through for the first time."""
    both = tile.head_dim + tile.value_dim
    of_parts = of("few_part_lines") if parts > 1 else 0.0
    if tile.key_warps > 1:
        return of("few_code_lines") + of("few_dim_lines") * both + of_parts
    more = of("idle_code_lines") + of_parts if tile.asks_for_idle else 0.0
    return of("warp_code_lines") + of("warp_dim_lines") * both + more


@lru_cache(maxsize=2048)
def rates_of(machine: Machine, busy: int) -> Rates:
    """L2 and DRAM are shared by so many SMs, of which none takes more than its port."""
    values = dict(zip(Rates._fields[: len(NEEDED)], map(machine.value, NEEDED), strict=True))
    per_clock = busy * machine.needed_clock_hz
    shared = {name: min(SLOT, values[name] / per_clock) for name in ("l2_bytes", "dram_bytes")}
    share, turn = values["dram_bytes"] / per_clock, machine.values.get(BANK_TURN, 0.0)
    return Rates(**values | shared, turn_latency=turn, dram_share=share)
