"""mma.sync throughput: what m16n8k16 reaches of the tensor cores' peak, over warps per SM and accumulators per warp.

On Hopper it stays at two thirds of the peak (2731 of 4096; 62 to 66 % on H100 and H800 by others): only wgmma feeds
the tensor cores in full. One m16n8k16 holds its tensor core for 6.0 cycles, of which the multiplication takes 4. The
other two are the instruction's own: they stay with f16 sums (half as many registers), with B in A's registers, with s8
and tf32, and m16n8k8 takes 4.0 = 2 + 2 (data/experiments, mma_sync_cycles).
"""

from microbench.machine.arch import with_feature
from microbench.machine.tensor import tensor_flops_per_clk
from microbench.measure.launch import Bench
from microbench.point import Point
from microbench.probe import Axis, Build, Constant, OpCount, Probe, Sample
from microbench.results.curves import at, peak
from microbench.shapes.chain import COUNTER, loop
from microbench.shapes.matrix import (
    HMMA_FILLER,
    INPUTS,
    PER_TRIP,
    K,
    mma_launches,
    rate_metrics,
    rates,
    tensor_cycles,
)

FLOPS = 2 * 16 * 8 * K
CYCLES_A_LAUNCH = 200_000  # of the in-kernel reading
WARPS = (4, 8, 16, 32)
LOADED_WARPS = 8
ILP = 4


def builds(point: Point) -> tuple[Build, ...]:
    """Eight HMMA, each reading the accumulators of the one `ilp` before."""
    defines = (("MAX_THREADS", 32 * WARPS[-1]), ("ILP", point["ilp"]))
    contract = loop(OpCount("HMMA.16816.F32.BF16", PER_TRIP), distance=point["ilp"], overhead=(COUNTER, HMMA_FILLER))
    return (Build(defines, contract),)


def run(bench: Bench, point: Point) -> list[Sample]:
    (kernel,) = bench.kernels(point)
    launch = mma_launches(bench, kernel, point["inputs"], point["warps"], point["ilp"])
    flops_a_trip = float(point["warps"] * PER_TRIP * FLOPS)
    rate = tensor_flops_per_clk(bench.machine)
    assert rate is not None
    trips = round(CYCLES_A_LAUNCH * rate / flops_a_trip / 4)
    return rates(bench, launch, trips, flops_a_trip, loaded(point))


def loaded(point: Point) -> bool:
    """Eight warps with four accumulators each: within 0.2 % of the most FLOP/s on two H100s and an H200."""
    return point.matches(warps=LOADED_WARPS, ilp=ILP)


PROBE = Probe(
    asks="How much of the tensor cores' peak does mma.sync m16n8k16 reach, and how many warps does that take?",
    archs=with_feature("mma_m16n8k16"),
    axes=(Axis("warps", WARPS, quick=(8, 16, 32)), Axis("ilp", (1, 2, ILP), quick=(ILP,)), INPUTS),
    metrics=rate_metrics("dense peak of the tensor cores", lambda _: FLOPS, tensor_cycles(FLOPS), loaded),
    builds=builds,
    run=run,
    constants=(
        Constant("mma_bf16_flops_per_clk_sm", "flops_per_clk_sm", peak("warps", ilp=ILP, inputs="normal")),
        Constant("mma_bf16_burst_flops_per_s", "flops_per_s", at(warps=LOADED_WARPS, ilp=ILP, inputs="normal")),
        Constant("mma_bf16_zeros_burst_flops_per_s", "flops_per_s", at(warps=LOADED_WARPS, ilp=ILP, inputs="zeros")),
    ),
)
