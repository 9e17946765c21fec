"""mma.sync latency: how long a warp's m16n8k16 keeps the next one waiting that adds to the same accumulators.

HMMA has a fixed latency and raises no scoreboard: the wait is the stall that ptxas schedules (24 cycles on sm_80 to
sm_90a, 20 on sm_100a, 29 on sm_120a), and the measurement says whether the hardware keeps to it.
"""

import numpy as np

from microbench.machine.arch import with_feature
from microbench.measure.launch import Bench, Launch
from microbench.point import Point
from microbench.probe import Axis, Build, Constant, OpCount, Probe, Sample
from microbench.results.curves import at
from microbench.shapes.chain import COUNTER, cycles_metric, loop
from microbench.shapes.matrix import HMMA_FILLER, PER_TRIP, K, mma_operands, nothing_left, tensor_cycles

FLOPS = 2 * 16 * 8 * K
SUB_CORES = 4  # a warp has the tensor core of one quarter of its SM
TRIPS = 64
TYPES = {"bf16": ("Bf16", "HMMA.16816.F32.BF16"), "f16": ("F16", "HMMA.16816.F32")}


def builds(point: Point) -> tuple[Build, ...]:
    """Eight HMMA, each reading the accumulators of the one before."""
    functor, opcode = TYPES[point["type"]]
    return (Build((("TYPE", functor),), loop(OpCount(opcode, PER_TRIP), distance=1, overhead=(COUNTER, HMMA_FILLER))),)


def run(bench: Bench, point: Point) -> list[Sample]:
    """Cycles per mma.sync of one warp on every SM."""
    (kernel,) = bench.kernels(point)
    sms = bench.machine.sm_count
    operands = bench.array(mma_operands(point["type"], "normal", threads=32, chains=1))
    out = bench.empty(4 * 32 * sms)
    trips, expects = bench.trips(TRIPS), (nothing_left(out, 32 * sms),)
    short, long = (Launch(kernel, sms, 32, (operands, np.int32(n), out), expects=expects) for n in (trips, 2 * trips))
    return [bench.cycles(short, long, operations=trips * PER_TRIP).sample("latency_cycles")]


WHY = "a dependent mma cannot start before the tensor core of its quarter has multiplied the one before"
PROBE = Probe(
    asks="How long does a dependent mma.sync m16n8k16 wait for the one before it?",
    archs=with_feature("mma_m16n8k16"),
    axes=(Axis("type", tuple(TYPES)),),
    metrics=(cycles_metric("latency", WHY, tensor_cycles(SUB_CORES * FLOPS)),),
    builds=builds,
    run=run,
    constants=tuple(Constant(f"mma_{kind}_latency_cycles", "latency_cycles", at(type=kind)) for kind in TYPES),
)
