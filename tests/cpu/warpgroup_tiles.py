"""Rates, tiles and a problem by which tests ask the model of warpgroups."""

from attention.choose.scores import cost_of
from attention.choose.warpgroups.parts import Rates
from attention.choose.warpgroups.step import Steps, steps_of
from attention.problem import AttentionProblem
from attention.tile import WarpgroupTile
from attention.variant import Config, by_path
from microbench.results.profile import Profile

RATES = Rates(
    tensor_flops=4096,
    ex2=16,
    ffma=128,
    smem_bytes=128,
    l2_bytes=36,
    line_bytes=64,
    product_latency=54,
    held_latency=44,
    smem_latency=23,
    handover_latency=52,
    ex2_latency=17,
    ffma_latency=4,
    l2_latency=280,
    dram_latency=667,
    ex2_beside=0.67,
    ffma_beside=0.21,
)
TILE = WarpgroupTile(128, 2, 64, 64, q_in_registers=False)
PLAIN = AttentionProblem(4, 32, 32, 4096, 4096, 64, dtype="bfloat16", device="cuda")
OURS = by_path("sm90a/forward/warp_specialised")
H200 = Profile.load("h200-sxm-141gb")


def made(values: dict[str, int]) -> Config:
    return Config(tuple(values.items()))


def steps(tile: WarpgroupTile = TILE, problem: AttentionProblem = PLAIN, rates: Rates = RATES) -> Steps:
    return steps_of(tile, cost_of(problem), rates)
