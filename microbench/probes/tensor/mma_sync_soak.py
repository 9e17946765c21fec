"""mma.sync for five seconds at a time: what the power limit leaves of it, and the watts and heat of each second."""

from microbench.machine.arch import with_feature
from microbench.machine.tensor import tensor_flops_per_clk
from microbench.measure.launch import Bench
from microbench.point import Point
from microbench.probe import Build, OpCount, Probe, Sample
from microbench.shapes.chain import COUNTER, loop
from microbench.shapes.matrix import HMMA_FILLER, PER_TRIP, K, mma_launches, tensor_cycles
from microbench.shapes.soak import CAMPAIGNS, INPUTS, soak_constants, soak_metrics, soaked

FLOPS = 2 * 16 * 8 * K
# The fastest burst of mma_sync_throughput on two H100s and an H200.
WARPS, ILP = 8, 4
THREADS = 32 * WARPS


def builds(_: Point) -> tuple[Build, ...]:
    contract = loop(OpCount("HMMA.16816.F32.BF16", PER_TRIP), distance=ILP, overhead=(COUNTER, HMMA_FILLER))
    return (Build((("MAX_THREADS", THREADS), ("ILP", ILP)), contract),)


def run(bench: Bench, point: Point) -> list[Sample]:
    (kernel,) = bench.kernels(point)
    rate = tensor_flops_per_clk(bench.machine)
    assert rate is not None
    launch = mma_launches(bench, kernel, point["inputs"], WARPS, ILP)
    return soaked(bench, launch, float(WARPS * PER_TRIP * FLOPS), rate)


PROBE = Probe(
    asks="What does mma.sync m16n8k16 sustain for seconds, at how many watts?",
    archs=with_feature("mma_m16n8k16"),
    axes=(INPUTS,),
    metrics=soak_metrics("dense peak of the tensor cores", FLOPS, tensor_cycles(FLOPS)),
    builds=builds,
    run=run,
    constants=soak_constants("mma_bf16"),
    campaigns=CAMPAIGNS,
)
