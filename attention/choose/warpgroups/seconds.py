"""Seconds of the sm90a forward from constants of a profile alone: steps, rounds of tiles of rows, and one clock.

    clock = highest - tensor share * (highest - clock of products alone)

Products slow the clock down (power), and what else runs beside them does not count: the energy of a byte from L2 is no
constant yet. Nothing calls this but its tests: the chooser goes by choose.model.
"""

from attention.choose.model import Unpredicted
from attention.choose.shares import _rows
from attention.choose.warpgroups.coefficients import BYTES, GROUP_ROWS, PRODUCT
from attention.choose.warpgroups.step import Rates, Sizes, step_of
from attention.kernels.sm90a.forward.warp_specialised.arguments import shape_of
from attention.problem import AttentionProblem
from attention.variant import Config
from microbench.results.profile import Profile

NS = 1e-9


def seconds(profile: Profile, problem: AttentionProblem, config: Config) -> float:
    """A call, launch and all. Raises Unpredicted."""
    known = {each.name: each.value for each in profile.constants if not each.doubtful}

    def value(name: str) -> float:
        if name not in known:
            raise Unpredicted(f"the profile of {profile.gpu} holds no {name}")
        return known[name]

    if profile.clock_hz is None:
        raise Unpredicted(f"the profile of {profile.gpu} holds no SM clock")
    l2, tensor = value("l2_bandwidth_bytes_per_s"), value("wgmma_n128_bf16_flops_per_clk_sm")
    rates = Rates(
        tensor,
        value("mufu_ex2_per_clk_sm"),
        value("smem_bandwidth_bytes_per_clk_sm"),
        l2 / profile.sm_count / profile.clock_hz,
        value("wgmma_n128_bf16_latency_cycles") - value("wgmma_n128_bf16_interval_cycles"),
        value("smem_latency_cycles"),
        value("mufu_ex2_latency_cycles"),
        value("ffma_latency_cycles"),
        value("l2_latency_cycles"),
    )
    shape = shape_of(problem, config)
    both = shape.head_dim + shape.value_dim
    step = step_of(
        Sizes(shape.tile_keys, shape.warpgroups, shape.head_dim, shape.value_dim, shape.q_in_registers), rates
    )
    rows = _rows(problem, shape.tile_rows, shape.tile_keys, shape.tile_rows, shape.tile_keys, 1)
    heads = problem.batch * problem.heads_q
    tiles = rows.total * heads
    longest = rows.longest * step.period + step.around
    if rows.longest == rows.shortest:
        cycles = -(-heads * rows.count // profile.sm_count) * longest
    else:  # dealt longest first: the last ones to be taken are short, and half of one is still missing on the average
        even = heads * (rows.total * step.period + rows.count * step.around) / profile.sm_count
        cycles = max(longest, even + (max(1.0, rows.shortest) * step.period + step.around) / 2)
    flops = PRODUCT * tiles * GROUP_ROWS * shape.warpgroups * shape.tile_keys * both
    share = min(1.0, flops / tensor / profile.sm_count / cycles)
    alone = value("wgmma_n128_bf16_burst_flops_per_s") / tensor / profile.sm_count
    clock = profile.clock_hz - share * max(0.0, profile.clock_hz - alone)
    from_l2 = BYTES * tiles * shape.tile_keys * both / l2
    queries, keys = problem.mean_lengths
    read = problem.heads_q * queries + problem.heads_kv * keys
    from_dram = BYTES * problem.batch * read * both / value("dram_bandwidth_bytes_per_s")
    begin = (2 * value("dram_latency_cycles")) / profile.clock_hz  # the tensor map, and by it the first tile
    return max(cycles / clock, from_l2, from_dram) + begin + value("event_to_event_empty_kernel_ns") * NS
