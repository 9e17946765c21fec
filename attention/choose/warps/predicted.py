"""A kernel of warps as seconds: the stays of the busiest SM's blocks over one clock (choose.one_clock)."""

from functools import lru_cache

from attention.choose.coefficients import BYTES, PRODUCT, SLOT, of
from attention.choose.lengths import UNKNOWN, Lengths
from attention.choose.lines import slots_of
from attention.choose.one_clock import call_of, clock_under
from attention.choose.prediction import Efficiency, Prediction, Term
from attention.choose.rates import (
    DRAM,
    DRAM_LATENCY,
    EX2,
    EX2_LATENCY,
    FFMA,
    FFMA_LATENCY,
    KEPT_MACHINES,
    L2,
    L2_LATENCY,
    SMEM,
    SMEM_LATENCY,
    Machine,
    machine_of,
)
from attention.choose.scores import cost_of
from attention.choose.shares import rows_read
from attention.choose.warps.block import LATENCY, TENSOR, Part, Rates, block_of
from attention.choose.warps.dealt import Dealt, dealt, parts_of
from attention.choose.warps.gathered import added, left
from attention.problem import AttentionProblem
from attention.tile import WarpTile
from microbench.results.profile import Profile

BURST = "mma_bf16_burst_flops_per_s"
# In the order of Rates.
NEEDED = (
    *(TENSOR, EX2, FFMA, SMEM, L2, DRAM),
    *(LATENCY, EX2_LATENCY, FFMA_LATENCY),
    *(SMEM_LATENCY, L2_LATENCY, DRAM_LATENCY),
)


def can(profile: Profile) -> bool:
    """Whether the profile has every constant that this model needs: few published ones have all latencies."""
    values = machine_of(profile).values
    return all(name in values for name in (*NEEDED, BURST))


def predicted(
    profile: Profile,
    problem: AttentionProblem,
    tile: WarpTile,
    efficiency: Efficiency,
    lengths: Lengths = UNKNOWN,
) -> Prediction:
    """A call, launch and all. Raises Unpredicted where the profile lacks a constant."""
    machine = machine_of(profile)
    rates, cost = _rates(machine), cost_of(problem)
    share = dealt(problem, tile, profile.sm_count, lengths)
    blocks = [(each, block_of(tile, cost, each.work, each.resident, rates)) for each in share.stays if each.times]
    alone = block_of(tile, cost, share.at_least.work, share.at_least.resident, rates)
    if sum(one.cycles * each.times for each, one in blocks) < alone.cycles:
        blocks = [(share.at_least, alone)]
    brought = _brought(problem, tile, parts_of(problem, tile, lengths), sum(each.times for each, _ in blocks), rates)
    cycles = sum(one.cycles * each.times for each, one in blocks) + sum(each.cycles * times for each, times in brought)
    flops = PRODUCT * share.slices * tile.warps * tile.scores * (tile.head_dim + tile.value_dim)
    clock = clock_under(machine, flops, rates.tensor_flops, BURST, cycles)
    seconds: dict[tuple[str, str], float] = {}
    all_parts = [(part, each.times) for each, one in blocks for part in one.parts]
    for part, times in (*all_parts, *brought):
        at = part.term, part.constant
        seconds[at] = seconds.get(at, 0.0) + part.cycles * times / clock
    terms = [
        Term(name, name, each, constant, machine.values.get(constant, 0.0))
        for (name, constant), each in seconds.items()
    ]
    slots = slots_of(problem.head_dim, tile.key_span_bytes) + slots_of(problem.head_dim_v, tile.value_span_bytes)
    memory = _memory(machine, tile, share, slots, rows_read(problem, lengths))
    in_flight = round(of("block_loads")) * blocks[0][0].resident if _alone_on_memory(share) else 0
    return call_of(machine, terms, memory, cycles / clock, efficiency, in_flight)


def _brought(
    problem: AttentionProblem, tile: WarpTile, parts: int, blocks: float, rates: Rates
) -> tuple[tuple[Part, float], ...]:
    """What bringing parts together takes of the busiest SM, with so many blocks one after another, and how often."""
    if parts == 1:
        return ()
    rows = min(tile.rows, problem.seq_q * tile.group)
    each = ((part, blocks) for part in left(tile, rows, rates))
    return *each, *((part, 1.0) for part in added(tile, rows, parts, rates))


def _alone_on_memory(share: Dealt) -> bool:
    """Whether what a block reads is read by no other: then it waits for DRAM at every tile, and not for the first."""
    return share.at_least.work.readers == 1


@lru_cache(maxsize=KEPT_MACHINES)
def _rates(machine: Machine) -> Rates:
    values = dict(zip(Rates._fields, map(machine.value, NEEDED), strict=True))
    per_clock = machine.profile.sm_count * machine.needed_clock_hz
    return Rates(**values | {name: values[name] / per_clock for name in ("l2_bytes", "dram_bytes")})


def _memory(machine: Machine, tile: WarpTile, share: Dealt, slots: float, rows: int) -> tuple[Term, ...]:
    both = tile.head_dim + tile.value_dim
    l2, dram = machine.value(L2), machine.value(DRAM)
    return (
        Term("K and V from L2", "memory", SLOT * slots * share.slices * tile.slice_keys / l2, L2, l2),
        Term("Q, K, V and out from DRAM", "memory", BYTES * rows * both / dram, DRAM, dram),
    )
