"""What kernels of ours take at least: a launch, and memory, the busiest SM's products or the longest block's slices.

A prediction counts all of it too, and whatever it adds takes longer: keys come in whole tiles, exponentials and loads
stand beside or behind products, DRAM gives some bytes again, and the clock falls. What a block of warps does between
two others is counted as well, and how parts are added up, since of few queries all tiles wait for the same bytes. So
none is below its floor, which takes a tenth of the time.
"""

from collections.abc import Sequence
from functools import lru_cache

from attention.choose.coefficients.table import GROUP_ROWS, PRODUCT, SCHEDULERS
from attention.choose.lengths import UNKNOWN, Lengths
from attention.choose.one_clock import IN_STEP, dram_of, start_of
from attention.choose.prediction import SECONDS
from attention.choose.rates import DRAM_LATENCY, L2_LATENCY, Machine, machine_of
from attention.choose.scores import cost_of
from attention.choose.shares import rows_of_all, rows_read
from attention.choose.warpgroups.predicted import rates_of
from attention.choose.warpgroups.step import TENSOR as WGMMA
from attention.choose.warpgroups.step import steps_of
from attention.choose.warps.block import least_round
from attention.choose.warps.gathered import cycles_of_adding, trips_of_part
from attention.choose.warps.predicted import can as can_by_warps
from attention.choose.warps.predicted import rates_of as rates_of_warps
from attention.choose.warps.waits import instructions_of
from attention.choose.warps.work import TENSOR as MMA_SYNC
from attention.problem import AttentionProblem
from attention.tile import WarpgroupTile, WarpTile
from attention.variant import Config, Variant
from microbench.results.profile import Profile


def floors(
    profile: Profile,
    problem: AttentionProblem,
    variant: Variant,
    configs: Sequence[Config],
    lengths: Lengths = UNKNOWN,
) -> list[float]:
    """Seconds of each, where no timings correct them; 0 where nothing is known of its warps or warpgroups."""
    machine, units = machine_of(profile), profile.sm_count
    known = variant.residents is not None and machine.clock_hz and variant.launch_of(problem) is problem
    wgmma, mma_sync = machine.values.get(WGMMA), machine.values.get(MMA_SYNC) if can_by_warps(profile) else None
    if not known or not (wgmma or mma_sync):
        return [0.0] * len(configs)
    assert variant.residents is not None and machine.clock_hz is not None
    memory = dram_of(machine, problem, rows_read(problem, lengths), 0.0, IN_STEP, l2_written=False).seconds
    start = sum(map(SECONDS, start_of(machine, problem.own_lengths, 1)))
    found = []
    for config in configs:
        tile, alone = variant.residents(problem, config), 0.0
        steps = 0.0
        if isinstance(tile, WarpgroupTile) and wgmma:
            flops_per_clk, (rows, keys) = wgmma, _of_warpgroups(tile, problem, units, lengths)
            steps = _steps(machine, tile, problem, keys) / machine.clock_hz
        elif isinstance(tile, WarpTile) and mma_sync:
            flops_per_clk, (rows, keys) = mma_sync, _of_warps(tile, problem, units, lengths)
            alone = _between(machine, tile, problem, units, lengths) / machine.clock_hz
            steps = _rounds(machine, tile, problem, units, lengths) / machine.clock_hz
        else:
            found.append(0.0)
            continue
        flops = PRODUCT * rows * keys * (tile.head_dim + tile.value_dim)
        found.append(start + alone + max(memory, steps, flops / flops_per_clk / machine.clock_hz))
    return found


def _of_warpgroups(tile: WarpgroupTile, problem: AttentionProblem, units: int, lengths: Lengths) -> tuple[float, float]:
    """Rows that are multiplied, and keys that the busiest SM multiplies them by."""
    rows = GROUP_ROWS * tile.warpgroups
    queries = tile.warpgroups * (GROUP_ROWS // tile.group)
    longest, of_all = _keys(problem, queries * tile.group, tile.group, lengths)
    # Parts are dealt one by one, and the SM that ends last may have short ones (longest_first).
    return rows, max(longest if tile.key_splits == 1 else 0.0, of_all / units)


def _steps(machine: Machine, tile: WarpgroupTile, problem: AttentionProblem, keys: float) -> float:
    """Cycles of so many keys in steps of all warpgroups, below a diagonal without those that some are spared."""
    whole = keys - GROUP_ROWS * tile.warpgroups if problem.edges.right is not None else keys
    if whole <= 0 or tile.group > 1:
        return 0.0
    return whole / tile.keys * steps_of(tile, cost_of(problem), rates_of(machine)).keys.cycles


def _of_warps(tile: WarpTile, problem: AttentionProblem, units: int, lengths: Lengths) -> tuple[float, float]:
    """The same, with as many warps at each scheduler as at the one that has the most."""
    rows = SCHEDULERS * -(-tile.warps // SCHEDULERS) * tile.warp_rows / tile.key_warps
    longest, of_all = _keys(problem, tile.rows, tile.group, lengths)
    return rows, max(longest / tile.key_splits, of_all / units)


def _rounds(machine: Machine, tile: WarpTile, problem: AttentionProblem, units: int, lengths: Lengths) -> float:
    """Cycles of the longest block's slices, whatever runs beside it: of few parts no memory takes as long."""
    longest, _ = _keys(problem, tile.rows, tile.group, lengths)
    least = least_round(tile, cost_of(problem), rates_of_warps(machine, units))
    return longest / tile.key_splits / tile.step_keys * least


def _between(machine: Machine, tile: WarpTile, problem: AttentionProblem, units: int, lengths: Lengths) -> float:
    """Cycles between the blocks of a place, beside which it loads nothing: nothing is counted of unlike lengths."""
    if lengths or problem.varlen:
        return 0.0
    longest, of_all = _keys(problem, tile.rows, tile.group, lengths)
    parts = max(1, min(tile.key_splits, int(longest) // tile.keys))
    tiles, places = of_all / longest if longest else 0.0, units * tile.blocks
    rounds = tiles * parts // places
    if parts == 1 or tile.kernels > 1:
        return max(1.0, rounds) * instructions_of(tile)
    l2_latency = machine.values[L2_LATENCY]
    each = instructions_of(tile) + trips_of_part(l2_latency, machine.values[DRAM_LATENCY])
    rows = min(tile.rows, problem.seq_q * tile.group)
    # Of more tiles than there are places the mean one's parts are added, which may be fewer.
    added = cycles_of_adding(tile, rows, parts, l2_latency) if tiles <= places else 0.0
    return max(1.0, rounds) * each + added


@lru_cache(maxsize=1024)  # tiles of any number of keys see as many
def _keys(problem: AttentionProblem, rows: int, group: int, lengths: Lengths) -> tuple[float, float]:
    """That the longest tile of rows sees, and all of them together."""
    every = rows_of_all(problem, rows, 1, rows, 1, group, lengths)
    return every.longest, every.total
