"""wgmma by N, one warpgroup alone: how long one takes from issue to completion, and how soon the next may follow it.

latency    fence, wgmma, commit, wait, again and again: what a kernel pays that waits for each
interval   a chain through the same accumulator with all its wgmma in flight: 128 cycles for N = 256 at full rate
"""

import numpy as np

from microbench.device.protocol import Kernel
from microbench.machine.arch import with_feature
from microbench.measure.launch import Bench, Launch, Measured
from microbench.point import Point
from microbench.probe import Axis, Build, Constant, Probe, Sample
from microbench.results.curves import at
from microbench.shapes.chain import cycles_metric
from microbench.shapes.matrix import PER_TRIP, nothing_left, wgmma_operands, wgmma_smem_bytes
from microbench.shapes.wgmma import NAMED, OPERANDS, contract, least_cycles

TRIPS = 64
THREADS = 128


def builds(point: Point) -> tuple[Build, ...]:
    """Two kernels: one waits for every wgmma, one only at its end."""
    shape = (("N_COLUMNS", point["n"]), ("A_IN_REGISTERS", int(point["operands"] == "rs")))
    return tuple(
        Build((*shape, ("WAIT_EACH", int(waits))), contract(point["n"], point["operands"], waits))
        for waits in (True, False)
    )


def run(bench: Bench, point: Point) -> list[Sample]:
    """Cycles per wgmma of one warpgroup on every SM, waited for one by one and in a chain."""
    waiting, chained = bench.kernels(point)
    sms = bench.machine.sm_count
    a, b = map(bench.array, wgmma_operands("normal", 1, point["n"]))
    out = bench.empty(4 * THREADS * sms)

    def cycles(kernel: Kernel) -> Measured:
        trips, smem, expects = bench.trips(TRIPS), wgmma_smem_bytes(1, point["n"]), (nothing_left(out, THREADS * sms),)
        short, long = (
            Launch(kernel, sms, THREADS, (a, b, np.int32(n), out), smem, expects) for n in (trips, 2 * trips)
        )
        return bench.cycles(short, long, operations=trips * PER_TRIP)

    return [cycles(waiting).sample("latency_cycles"), cycles(chained).sample("interval_cycles")]


QUANTITIES = ("latency", "interval")
WHY = "tensor-core rate, and the operands' way out of shared memory at 128 bytes per clock"
PROBE = Probe(
    asks="How long does a wgmma m64nNk16 take from issue to completion, and how soon may the next one follow?",
    archs=with_feature("wgmma"),
    axes=(Axis("n", (8, 16, 32, 64, 96, 128, 192, 256), quick=(64, 128, 256)), OPERANDS),
    metrics=tuple(cycles_metric(quantity, WHY, least_cycles) for quantity in QUANTITIES),
    builds=builds,
    run=run,
    constants=tuple(
        Constant(f"{name}_{quantity}_cycles", f"{quantity}_cycles", at(n=n, operands=operands))
        for name, n, operands in NAMED
        for quantity in QUANTITIES
    ),
)
