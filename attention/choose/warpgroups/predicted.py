"""A kernel of warpgroups as seconds: parts of its steps, times what the busiest SM works through, over one clock.

The longest part of each phase counts; the rest is choose.one_clock.
"""

from functools import lru_cache, partial

from attention.choose.coefficients.table import BYTES, GROUP_ROWS, LINE, PRODUCT, SLOT, of
from attention.choose.lengths import UNKNOWN, Lengths, sequences
from attention.choose.one_clock import BY_BOXES, Loads, call_of, clock_under, dram_of, l2_of
from attention.choose.prediction import SECONDS, Efficiency, Prediction, Term
from attention.choose.rates import (
    COALESCED,
    DRAM,
    DRAM_LATENCY,
    EX2,
    EX2_LATENCY,
    FFMA,
    FFMA_LATENCY,
    HANDOVER,
    KEPT_MACHINES,
    L2,
    L2_LATENCY,
    SMEM,
    SMEM_LATENCY,
    Machine,
    machine_of,
)
from attention.choose.scores import ScoreCost, cost_of
from attention.choose.shares import rows_of_all, rows_read
from attention.choose.unlike import seconds_of_all
from attention.choose.warpgroups.code import before_first_tile, code_anew, code_lines_of
from attention.choose.warpgroups.dealt import Dealt, by_groups, dealt
from attention.choose.warpgroups.fewer import Fewer, Work, fewer_of
from attention.choose.warpgroups.gathered import gathered
from attention.choose.warpgroups.handed import changes
from attention.choose.warpgroups.laid_out import mask_laid_out
from attention.choose.warpgroups.masks import mask_of_rows
from attention.choose.warpgroups.parts import Parts, Rates
from attention.choose.warpgroups.ring import late_of_pair, late_of_ring
from attention.choose.warpgroups.step import LATENCY, TENSOR, steps_of
from attention.choose.waves import of_waves
from attention.features.mask import element_bytes
from attention.kernels.common.family import readers
from attention.problem import AttentionProblem
from attention.tile import RING, WarpgroupTile
from microbench.results.profile import Profile

INTERVAL, BURST = "wgmma_n128_bf16_interval_cycles", "wgmma_n128_bf16_burst_flops_per_s"
EX2_BESIDE, FFMA_BESIDE = "wgmma_n128_bf16_beside_ex2_overlap_ratio", "wgmma_n128_bf16_beside_ffma_overlap_ratio"
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
    rates = rates_of(machine)
    units = profile.sm_count
    queries, keys = GROUP_ROWS // tile.group, tile.keys
    tile_rows = tile.warpgroups * queries
    share = dealt(by_groups(problem, tile.group), tile_rows, keys, units, lengths, tile.key_splits, queries)
    cost = cost_of(problem)
    causal, edged = problem.edges.right is not None, share.rows if tile.key_splits == 1 else min(1.0, share.rows)
    fewer = fewer_of(tile, cost, rates, problem, share)
    apart = min(1.0, fewer.together) if fewer and fewer.apart else 1.0
    together = share.rows - (edged * apart if causal else 0.0)
    work = _steps(tile, cost, rates, share, together)
    step = work[0][0]
    if fewer:
        if tile.crosses and fewer.apart:
            work = _crossed_in_part(tile, work, share, fewer, together, cost, rates)
        work = fewer.of(work, share, tile.key_splits)
    # Rows that are one tile of keys meet no guess, and the next one's mask is asked for while these are multiplied.
    longer = min(1.0, max(0.0, share.keys / share.rows - 1)) if tile.mask_ahead else 0.0
    lines = code_lines_of(tile, cost, longer > 0)
    if longer:
        work.append((Parts.of(*mask_of_rows(tile, cost, rates)), longer * share.rows))
        work.append((Parts.of(code_anew(machine, lines)), share.rows))
    readers_of_keys = readers(problem, tile_rows * tile.group, tile.group)
    late = late_of_ring(tile, cost, step.cycles, readers_of_keys, rates), late_of_pair(tile, step.cycles, rates)
    work.append((Parts.of(*late), share.keys))
    if tile.key_splits > 1:
        blocks = min(units, share.every // share.parts * tile.key_splits)  # those without a part of their own too
        work.append((Parts.of(*gathered(tile, share.parts, share.every, blocks, rates)), 1.0))
    spans = BYTES * tile.key_panel or LINE, BYTES * tile.value_panel or LINE
    cycles = sum(parts.cycles * many for parts, many in work)
    flops = PRODUCT * share.in_all * GROUP_ROWS * tile.warpgroups * tile.keys * (tile.head_dim + tile.value_dim)
    clock = clock_under(machine, flops, rates.tensor_flops, BURST, cycles)
    at_once = min(1.0, units / share.every)
    dram = dram_of(machine, problem, rows_read(problem, lengths), at_once, BY_BOXES, l2_written)
    masks = element_bytes(problem) * GROUP_ROWS * tile.warpgroups / tile.share
    memory = l2_of(machine, problem, share.in_all * tile.keys, spans, lengths, masks), dram
    once = *before_first_tile(machine, problem, tile, lines, clock), *mask_laid_out(machine, problem)
    ends = _ends(machine, problem, tile, min(units, share.every))
    alone = sum(map(SECONDS, once))
    busy = cycles / clock + sum(map(SECONDS, ends)) + alone
    terms = partial(_terms, machine, work, clock, (*once, *ends))
    if lengths:
        at_least = _unlike(machine, problem, tile, step, lengths, clock)
    else:
        # Keys of a ring's depth have come before a wave begins.
        in_waves = share.alike and share.keys > tile.stages * share.rows
        at_least = of_waves(share.every, units, cycles / clock / share.rows, dram) if in_waves else None
    return call_of(machine, problem, terms, memory, busy, efficiency, Loads(tile.boxes), alone, at_least)


def _unlike(
    machine: Machine, problem: AttentionProblem, tile: WarpgroupTile, step: Parts, lengths: Lengths, clock: float
) -> Term | None:
    """What memory takes at least where tiles of rows that have unequal keys end one after another; each has an SM."""
    rows = tile.warpgroups * (GROUP_ROWS // tile.group)
    if problem.seq_q > rows or tile.key_splits > 1:
        return None
    size, dram = (rows, tile.keys), machine.value(DRAM)
    each = [
        (many, rows_of_all(alone, *size, *size)) for many, alone in sequences(by_groups(problem, tile.group), lengths)
    ]
    blocks = [(float(many * every.number), every.total / every.number) for many, every in each]
    shared_by = 1 if tile.group > 1 else problem.heads_q // problem.heads_kv
    shared = BYTES * tile.keys * (tile.head_dim + tile.value_dim) / shared_by / dram
    seconds = seconds_of_all(blocks, machine.profile.sm_count, step.cycles / clock, shared)
    return Term("tiles of unequal keys", "memory", seconds, DRAM, dram)


def _steps(tile: WarpgroupTile, cost: ScoreCost, rates: Rates, share: Dealt, together: float) -> Work:
    """Those of steps_of: all tiles of keys first, then what comes beside them. `together`: tiles of rows that are."""
    changed = changes(tile, share.keys, share.rows)
    return [
        *zip(
            steps_of(tile, cost, rates),
            (share.keys, share.rows, share.edges, *changed, 1.0, together),
            strict=True,
        )
    ]


def _crossed_in_part(
    tile: WarpgroupTile, work: Work, share: Dealt, fewer: Fewer, together: float, cost: ScoreCost, rates: Rates
) -> Work:
    """Where causality hides the last tile of keys from all warpgroups but one, that one's rows alone cross.

    Without crossing a longer ring brings nothing. By it blocks take numbers that many tiles of keys earlier, and as
    rows are unequal they end further apart, by half of that on the average.
    """
    (step, keys), *others = work
    apart = min(1.0, fewer.together) * (tile.warpgroups - 1) / tile.warpgroups
    _, *of_ring = _steps(tile._replace(stages=RING), cost, rates, share, together)
    further = (tile.stages - RING) / 2 if share.rows > 1 else 0.0
    return [
        (step, keys + further),
        *((parts, (1 - apart) * many) for parts, many in others),
        *((parts, apart * many) for parts, many in of_ring),
    ]


def _terms(machine: Machine, work: Work, clock: float, beside: tuple[Term, ...]) -> list[Term]:
    """Of all the work, and of what is beside it."""
    seconds: dict[tuple[str, str, str], float] = {}
    for parts, many in work:
        for name, phase, each, constant in parts.each:
            seconds[name, phase, constant] = seconds.get((name, phase, constant), 0.0) + each * many / clock
    of_steps = [
        Term(name, phase, found, constant, machine.values.get(constant, 0.0))
        for (name, phase, constant), found in seconds.items()
        if found
    ]
    return [*of_steps, *beside]


def _ends(machine: Machine, problem: AttentionProblem, tile: WarpgroupTile, busy: int) -> tuple[Term, ...]:
    """First rows and last outputs, which all SMs that have a tile bring at once, and no product runs beside.

    Q is read once, so that it comes from DRAM; outputs have to come to the L2 alone.
    """
    l2, dram, clock = machine.values[L2], machine.values[DRAM], machine.needed_clock_hz
    of_one = min(l2 / busy, SLOT * clock)  # an SM's own port gives as much as a slice of L2
    row_bytes = BYTES * min(GROUP_ROWS * tile.warpgroups, problem.seq_q * tile.group)
    q, k = row_bytes * tile.head_dim, BYTES * min(tile.keys, problem.seq_kv) * tile.head_dim
    from_dram, from_l2 = busy * q / dram, (q + k) / of_one
    if from_dram > from_l2:
        first = Term("first rows of all SMs", "first rows", from_dram, DRAM, dram)
    else:
        first = Term("first rows of all SMs", "first rows", from_l2, L2, l2)
    last = Term("last outputs of all SMs", "last outputs", row_bytes * tile.value_dim / of_one, L2, l2)
    if tile.share == 1:
        return first, last
    latency = machine.values[L2_LATENCY]
    return (
        first,
        last,
        Term("blocks meet and part", "blocks part", of("parting_trips") * latency / clock, L2_LATENCY, latency),
    )


@lru_cache(maxsize=KEPT_MACHINES)
def rates_of(machine: Machine) -> Rates:
    """Those of one SM that its warpgroups share."""
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
        handover_latency=machine.values.get(HANDOVER, 0.0),
        ex2_latency=machine.value(EX2_LATENCY),
        ffma_latency=machine.value(FFMA_LATENCY),
        l2_latency=machine.value(L2_LATENCY),
        dram_latency=machine.value(DRAM_LATENCY),
        ex2_beside=machine.values.get(EX2_BESIDE, 1.0),
        ffma_beside=machine.values.get(FFMA_BESIDE, 1.0),
    )


def _held_latency(machine: Machine) -> float:
    """The same with one operand in registers, where the profile says so."""
    known = HELD_LATENCY in machine.values and HELD_INTERVAL in machine.values
    latency, interval = (HELD_LATENCY, HELD_INTERVAL) if known else (LATENCY, INTERVAL)
    return machine.value(latency) - machine.value(interval)
