"""A kernel of warpgroups as seconds: parts of its steps, times what the busiest SM works through, over one clock.

    seconds = max(sum over phases of the longest part, K and V from L2, all from DRAM) + first loads + launch
    clock   = highest - tensor share * (highest - clock of products alone)

Products slow the clock down (power), and what else runs beside them does not count: the energy of a byte from L2 is no
constant yet.
"""

from collections.abc import Iterator

from attention.choose.coefficients import BYTES, GROUP_ROWS, LINE, PRODUCT, of
from attention.choose.prediction import SECONDS, Efficiency, Prediction, Term
from attention.choose.rates import Machine, launch_of, machine_of
from attention.choose.scores import cost_of
from attention.choose.shares import rows_read
from attention.choose.warpgroups.dealt import Dealt, dealt
from attention.choose.warpgroups.lines import lines_of
from attention.choose.warpgroups.step import (
    EX2,
    EX2_LATENCY,
    FFMA,
    FFMA_LATENCY,
    L2_LATENCY,
    LATENCY,
    SMEM,
    SMEM_LATENCY,
    TENSOR,
    Rates,
    steps_of,
)
from attention.features.mask import element_bytes
from attention.problem import AttentionProblem
from attention.tile import WarpgroupTile
from microbench.results.profile import Profile

INTERVAL, BURST = "wgmma_n128_bf16_interval_cycles", "wgmma_n128_bf16_burst_flops_per_s"
L2, DRAM, DRAM_LATENCY = "l2_bandwidth_bytes_per_s", "dram_bandwidth_bytes_per_s", "dram_latency_cycles"


def predicted(profile: Profile, problem: AttentionProblem, tile: WarpgroupTile, efficiency: Efficiency) -> Prediction:
    """A call, launch and all. Raises Unpredicted where the profile lacks a constant."""
    machine = machine_of(profile)
    rates = _rates(machine)
    steps = steps_of(tile, cost_of(problem), rates)
    share = dealt(problem, GROUP_ROWS * tile.warpgroups, tile.keys, profile.sm_count)
    groups = (steps.keys, share.keys), (steps.rows, share.rows), (steps.edges, share.edges)
    cycles = sum(parts.cycles * times for parts, times in groups)
    clock = _clock(machine, tile, share, cycles, rates)
    values = machine.values
    terms = [
        Term(name, phase, each * times / clock, constant, values.get(constant, 0.0))
        for parts, times in groups
        for name, phase, each, constant in parts.each
        if each * times
    ]
    memory = tuple(_memory(machine, problem, tile, share))
    start = (_first_loads(machine), *launch_of(machine))
    slowest = max(memory, key=SECONDS)
    seconds = max(cycles / clock, slowest.seconds) + sum(map(SECONDS, start))
    bound = slowest if slowest.seconds > cycles / clock else max(terms, key=SECONDS)
    seconds = seconds / efficiency.value + efficiency.overhead_seconds
    return Prediction(
        seconds=seconds,
        bound_by=bound.term,
        terms=(*terms, *memory, *start),
        cycles=seconds * machine.needed_clock_hz,
        efficiency=efficiency,
        unhidden_seconds=seconds,  # nothing is hidden that another schedule would show
    )


def _first_loads(machine: Machine) -> Term:
    latency = machine.value(DRAM_LATENCY)
    return Term("first loads", "start", of("first_loads") * latency / machine.needed_clock_hz, DRAM_LATENCY, latency)


def _rates(machine: Machine) -> Rates:
    per_clock = machine.profile.sm_count * machine.needed_clock_hz
    return Rates(
        tensor_flops=machine.value(TENSOR),
        ex2=machine.value(EX2),
        ffma=machine.value(FFMA),
        smem_bytes=machine.value(SMEM),
        l2_bytes=machine.value(L2) / per_clock,
        product_latency=machine.value(LATENCY) - machine.value(INTERVAL),
        smem_latency=machine.value(SMEM_LATENCY),
        ex2_latency=machine.value(EX2_LATENCY),
        ffma_latency=machine.value(FFMA_LATENCY),
        l2_latency=machine.value(L2_LATENCY),
    )


def _clock(machine: Machine, tile: WarpgroupTile, share: Dealt, cycles: float, rates: Rates) -> float:
    """Between the highest and that of products alone, by the share of the tensor cores' cycles that are taken."""
    units = machine.profile.sm_count
    flops = PRODUCT * share.in_all * GROUP_ROWS * tile.warpgroups * tile.keys * (tile.head_dim + tile.value_dim)
    taken = min(1.0, flops / rates.tensor_flops / units / cycles)
    highest, alone = machine.needed_clock_hz, machine.value(BURST) / rates.tensor_flops / units
    return highest - taken * max(0.0, highest - alone)


def _memory(machine: Machine, problem: AttentionProblem, tile: WarpgroupTile, share: Dealt) -> Iterator[Term]:
    both = tile.head_dim + tile.value_dim
    lines = lines_of(problem.head_dim) + lines_of(problem.head_dim_v)
    l2, dram = machine.value(L2), machine.value(DRAM)
    masks = element_bytes(problem) * GROUP_ROWS * tile.warpgroups
    yield Term("K and V from L2", "memory", share.in_all * tile.keys * (LINE * lines + masks) / l2, L2, l2)
    yield Term("Q, K, V and out from DRAM", "memory", BYTES * rows_read(problem) * both / dram, DRAM, dram)
