"""A kernel of warps as seconds: the stays of the busiest SM's blocks over one clock.

    seconds = max(cycles / clock, K and V from L2, all from DRAM) + first loads + launch
    clock   = highest - tensor share * (highest - clock of products alone)

Products slow the clock down (power), and what else runs beside them does not count.
"""

from attention.choose.coefficients import BYTES, PRODUCT, of
from attention.choose.prediction import SECONDS, Efficiency, Prediction, Term
from attention.choose.rates import Machine, launch_of, machine_of
from attention.choose.scores import cost_of
from attention.choose.shares import rows_read
from attention.choose.warps import block
from attention.choose.warps.block import Rates, block_of
from attention.choose.warps.dealt import Dealt, dealt
from attention.problem import AttentionProblem
from attention.tile import WarpTile
from microbench.results.profile import Profile

BURST = "mma_bf16_burst_flops_per_s"
# In the order of Rates.
NEEDED = (
    *(block.TENSOR, block.EX2, block.FFMA, block.SMEM, block.L2, block.DRAM),
    *(block.LATENCY, block.EX2_LATENCY, block.FFMA_LATENCY),
    *(block.SMEM_LATENCY, block.L2_LATENCY, block.DRAM_LATENCY),
)


def can(profile: Profile) -> bool:
    """Whether the profile has every constant that this model needs: few published ones have all latencies."""
    values = machine_of(profile).values
    return all(name in values for name in (*NEEDED, BURST))


def predicted(profile: Profile, problem: AttentionProblem, tile: WarpTile, efficiency: Efficiency) -> Prediction:
    """A call, launch and all. Raises Unpredicted where the profile lacks a constant."""
    machine = machine_of(profile)
    rates, cost = _rates(machine), cost_of(problem)
    share = dealt(problem, tile, profile.sm_count)
    blocks = [(each, block_of(tile, cost, each.work, each.resident, rates)) for each in share.stays if each.times]
    alone = block_of(tile, cost, share.at_least.work, share.at_least.resident, rates)
    if sum(one.cycles * each.times for each, one in blocks) < alone.cycles:
        blocks = [(share.at_least, alone)]
    cycles = sum(one.cycles * each.times for each, one in blocks)
    clock = _clock(machine, tile, share, cycles, rates)
    seconds: dict[tuple[str, str], float] = {}
    for each, one in blocks:
        for part in one.parts:
            at = part.term, part.constant
            seconds[at] = seconds.get(at, 0.0) + part.cycles * each.times / clock
    terms = [
        Term(name, name, each, constant, machine.values.get(constant, 0.0))
        for (name, constant), each in seconds.items()
    ]
    memory = _memory(machine, problem, tile, share)
    latency = machine.value(block.DRAM_LATENCY)
    first = of("first_loads") * latency / machine.needed_clock_hz
    start = (Term("first loads", "start", first, block.DRAM_LATENCY, latency), *launch_of(machine))
    slowest, busy = max(memory, key=SECONDS), cycles / clock
    total = (max(busy, slowest.seconds) + sum(map(SECONDS, start))) / efficiency.value + efficiency.overhead_seconds
    return Prediction(
        seconds=total,
        bound_by=(slowest if slowest.seconds > busy else max(terms, key=SECONDS)).term,
        terms=(*terms, *memory, *start),
        cycles=total * machine.needed_clock_hz,
        efficiency=efficiency,
        unhidden_seconds=total,  # nothing is hidden that another schedule would show
    )


def _rates(machine: Machine) -> Rates:
    values = dict(zip(Rates._fields, map(machine.value, NEEDED), strict=True))
    per_clock = machine.profile.sm_count * machine.needed_clock_hz
    return Rates(**values | {name: values[name] / per_clock for name in ("l2_bytes", "dram_bytes")})


def _clock(machine: Machine, tile: WarpTile, share: Dealt, cycles: float, rates: Rates) -> float:
    """Between the highest and that of products alone, by the share of the tensor cores' cycles that are taken."""
    units = machine.profile.sm_count
    flops = PRODUCT * share.slices * tile.warps * tile.scores * (tile.head_dim + tile.value_dim)
    taken = min(1.0, flops / rates.tensor_flops / units / cycles)
    highest, alone = machine.needed_clock_hz, machine.value(BURST) / rates.tensor_flops / units
    return highest - taken * max(0.0, highest - alone)


def _memory(machine: Machine, problem: AttentionProblem, tile: WarpTile, share: Dealt) -> tuple[Term, ...]:
    both = tile.head_dim + tile.value_dim
    l2, dram = machine.value(block.L2), machine.value(block.DRAM)
    return (
        Term("K and V from L2", "memory", BYTES * share.slices * tile.slice_keys * both / l2, block.L2, l2),
        Term("Q, K, V and out from DRAM", "memory", BYTES * rows_read(problem) * both / dram, block.DRAM, dram),
    )
