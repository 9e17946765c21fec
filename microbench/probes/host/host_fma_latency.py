"""The latency of one f32 multiply-add: a chain in which each needs the result of the one before."""

import numpy as np

from microbench.compile.host_code import provable
from microbench.machine.arch import HOST
from microbench.measure.host import HostBench
from microbench.measure.host_asm import require_chain
from microbench.point import Point
from microbench.probe import Probe, Sample
from microbench.results.curves import at
from microbench.shapes.chain import times
from microbench.shapes.lap import latency_metrics

CHAIN = 64


@provable()
def chain(value: float, factor: float, add: float, laps: int) -> float:
    for _ in range(laps):
        for _ in range(CHAIN):
            value = value * factor + add
    return value


def run(bench: HostBench, _: Point) -> list[Sample]:
    """Time per multiply-add of the chain; the loop's own counting runs beside it."""
    value, factor, add = np.float32(0.5), np.float32(0.75), np.float32(0.25)

    def work(laps: int) -> None:
        nonlocal value
        value = np.float32(chain(value, factor, add, laps))

    work(1)
    proof = require_chain(chain, CHAIN)
    return bench.alone(work).flagged(proof).latency(scale=1 / CHAIN)


WHY = "a result takes at least two clocks, the quickest forwarding of any shipped multiply-add pipe"

PROBE = Probe(
    asks="How long after an f32 multiply-add can another one use its result on this CPU?",
    archs=HOST,
    metrics=latency_metrics(WHY, f"{WHY}, at the highest clock", least_clocks=2.0),
    run=run,
    constants=times("host_fma_latency", at()),
)
