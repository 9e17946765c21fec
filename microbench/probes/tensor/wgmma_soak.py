"""wgmma for five seconds at a time: what the power limit leaves of it, and the watts and heat of each second."""

from microbench.machine.arch import with_feature
from microbench.machine.tensor import tensor_flops_per_clk
from microbench.measure.launch import Bench
from microbench.point import Point
from microbench.probe import Build, Probe, Sample
from microbench.shapes.matrix import PER_TRIP, wgmma_launches
from microbench.shapes.soak import CAMPAIGNS, INPUTS, soak_constants, soak_metrics, soaked
from microbench.shapes.wgmma import contract, flops, least_cycles

# The fastest bursts of wgmma_throughput on two H100s and an H200, both with A in registers.
N, OPERANDS = 256, "rs"
SHAPE = Point((("n", N), ("operands", OPERANDS)))
WARPGROUPS = {"normal": 1, "zeros": 3}


def builds(_: Point) -> tuple[Build, ...]:
    defines = (("N_COLUMNS", N), ("A_IN_REGISTERS", 1), ("MAX_THREADS", 128 * max(WARPGROUPS.values())))
    return (Build(defines, contract(N, OPERANDS)),)


def run(bench: Bench, point: Point) -> list[Sample]:
    (kernel,) = bench.kernels(point)
    warpgroups, rate = WARPGROUPS[point["inputs"]], tensor_flops_per_clk(bench.machine)
    assert rate is not None
    launch = wgmma_launches(bench, kernel, point["inputs"], warpgroups, N)
    return soaked(bench, launch, warpgroups * PER_TRIP * flops(SHAPE), rate)


PROBE = Probe(
    asks="What does wgmma m64n256k16 sustain for seconds, at how many watts?",
    archs=with_feature("wgmma"),
    axes=(INPUTS,),
    metrics=soak_metrics(
        "tensor-core rate, and the operands' way out of shared memory",
        flops(SHAPE),
        lambda machine, _: least_cycles(machine, SHAPE),
    ),
    builds=builds,
    run=run,
    constants=soak_constants("wgmma_bf16"),
    campaigns=CAMPAIGNS,
)
