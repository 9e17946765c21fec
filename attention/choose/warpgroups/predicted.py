"""A kernel of warpgroups as seconds: parts of its steps, times what the busiest SM works through, over one clock.

The longest part of each phase counts; the rest is choose.one_clock.
"""

from collections.abc import Iterator
from functools import lru_cache, partial

from attention.choose.coefficients import BYTES, GROUP_ROWS, LINE, PRODUCT, SLOT, of
from attention.choose.lengths import UNKNOWN, Lengths
from attention.choose.one_clock import call_of, clock_under, code_of, dram_of, l2_of
from attention.choose.prediction import SECONDS, Efficiency, Prediction, Term
from attention.choose.rates import (
    COALESCED,
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
from attention.choose.warpgroups.dealt import Dealt, dealt
from attention.choose.warpgroups.gathered import gathered
from attention.choose.warpgroups.handed import changes
from attention.choose.warpgroups.laid_out import mask_laid_out
from attention.choose.warpgroups.parts import Parts, Rates
from attention.choose.warpgroups.step import LATENCY, TENSOR, steps_of
from attention.features.mask import element_bytes
from attention.problem import AttentionProblem
from attention.tile import WarpgroupTile
from microbench.results.profile import Profile

INTERVAL, BURST = "wgmma_n128_bf16_interval_cycles", "wgmma_n128_bf16_burst_flops_per_s"
HELD_INTERVAL, HELD_LATENCY = "wgmma_n128_bf16_rs_interval_cycles", "wgmma_n128_bf16_rs_latency_cycles"


def predicted(
    profile: Profile,
    problem: AttentionProblem,
    tile: WarpgroupTile,
    efficiency: Efficiency,
    lengths: Lengths = UNKNOWN,
    l2_written: bool = False,
) -> Prediction:
    """A call, launch and all. Raises Unpredicted where the profile lacks a constant."""
    machine = machine_of(profile)
    rates = _rates(machine)
    units = profile.sm_count
    share = dealt(problem, GROUP_ROWS * tile.warpgroups, tile.keys, units, lengths, tile.key_splits)
    brought = Parts.of(*gathered(tile, share.parts, share.every, units, rates))
    steps = *steps_of(tile, cost_of(problem), rates), brought
    times = share.keys, share.rows, share.edges, *changes(tile, share.keys, share.rows), 1.0, 1.0  # of each of steps
    cycles = sum([parts.cycles * many for parts, many in zip(steps, times, strict=True)])
    flops = PRODUCT * share.in_all * GROUP_ROWS * tile.warpgroups * tile.keys * (tile.head_dim + tile.value_dim)
    clock = clock_under(machine, flops, rates.tensor_flops, BURST, cycles)
    found = of("first_load_instructions") + (of("part_found_instructions") if tile.key_splits > 1 else 0.0)
    begin = Term("before the first loads", "begin", found / clock, "", 0.0)
    at_once = min(1.0, units / share.every)
    dram = dram_of(machine, problem, rows_read(problem, lengths), at_once, l2_written)
    spans = BYTES * tile.key_panel or LINE, BYTES * tile.value_panel or LINE
    masks = element_bytes(problem) * GROUP_ROWS * tile.warpgroups / tile.share
    memory = l2_of(machine, problem, share.in_all * tile.keys, spans, lengths, masks), dram
    latency = machine.values[DRAM_LATENCY]
    jumps = Term("jumps to code", "jumps", of("code_jumps") * latency / clock, DRAM_LATENCY, latency)
    once = (begin, code_of(machine, _lines(problem, tile), clock), jumps, *mask_laid_out(machine, problem))
    ends = tuple(_ends(machine, problem, tile, share))
    alone = sum(map(SECONDS, once))
    busy = cycles / clock + sum(map(SECONDS, ends)) + alone
    terms = partial(_terms, machine, steps, times, clock, (*once, *ends))
    return call_of(machine, problem, terms, memory, busy, efficiency, tile.boxes, alone)


def _terms(
    machine: Machine, steps: tuple[Parts, ...], times: tuple[float, ...], clock: float, beside: tuple[Term, ...]
) -> list[Term]:
    """Of each of the steps, so many times over, and of what is beside them."""
    of_steps = [
        Term(name, phase, each * many / clock, constant, machine.values.get(constant, 0.0))
        for parts, many in zip(steps, times, strict=True)
        for name, phase, each, constant in parts.each
        if each * many
    ]
    return [*of_steps, *beside]


def _ends(machine: Machine, problem: AttentionProblem, tile: WarpgroupTile, share: Dealt) -> Iterator[Term]:
    """First rows and last outputs, which all SMs that have a tile bring at once, and no product runs beside.

    Q is read once, so that it comes from DRAM; outputs have to come to the L2 alone.
    """
    busy, rows = min(machine.profile.sm_count, share.every), min(GROUP_ROWS * tile.warpgroups, problem.seq_q)
    l2, dram, clock = machine.value(L2), machine.value(DRAM), machine.needed_clock_hz
    of_one = min(l2 / busy, SLOT * clock)  # an SM's own port gives as much as a slice of L2
    q, k = BYTES * rows * tile.head_dim, BYTES * min(tile.keys, problem.seq_kv) * tile.head_dim
    from_dram, from_l2 = busy * q / dram, (q + k) / of_one
    bound = (DRAM, dram) if from_dram > from_l2 else (L2, l2)
    yield Term("first rows of all SMs", "first rows", max(from_dram, from_l2), *bound)
    yield Term("last outputs of all SMs", "last outputs", BYTES * rows * tile.value_dim / of_one, L2, l2)
    if tile.share > 1:
        latency = machine.value(L2_LATENCY)
        yield Term("blocks part", "blocks part", of("parting_trips") * latency / clock, L2_LATENCY, latency)


def _lines(problem: AttentionProblem, tile: WarpgroupTile) -> float:
    """Of code that a warpgroup runs through."""
    edges = (problem.edges.left is not None) + (problem.edges.right is not None)
    keys, values = 2 + edges + tile.crosses, 1 + tile.crosses
    parts = of("part_lines") if tile.key_splits > 1 else 0.0
    return of("code_lines") + of("key_lines") * tile.keys * keys + of("value_lines") * tile.value_dim * values + parts


@lru_cache(maxsize=KEPT_MACHINES)
def _rates(machine: Machine) -> Rates:
    per_clock = machine.profile.sm_count * machine.needed_clock_hz
    return Rates(
        tensor_flops=machine.value(TENSOR),
        ex2=machine.value(EX2),
        ffma=machine.value(FFMA),
        smem_bytes=machine.value(SMEM),
        l2_bytes=machine.value(L2) / per_clock,
        line_bytes=machine.values.get(COALESCED, machine.value(L2) / per_clock),
        product_latency=machine.value(LATENCY) - machine.value(INTERVAL),
        held_latency=_held_latency(machine),
        smem_latency=machine.value(SMEM_LATENCY),
        ex2_latency=machine.value(EX2_LATENCY),
        ffma_latency=machine.value(FFMA_LATENCY),
        l2_latency=machine.value(L2_LATENCY),
        dram_latency=machine.value(DRAM_LATENCY),
    )


def _held_latency(machine: Machine) -> float:
    """The same with one operand in registers, where the profile says so."""
    known = HELD_LATENCY in machine.values and HELD_INTERVAL in machine.values
    latency, interval = (HELD_LATENCY, HELD_INTERVAL) if known else (LATENCY, INTERVAL)
    return machine.value(latency) - machine.value(interval)
