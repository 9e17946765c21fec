"""The chase that most published figures used, `i = a[i]`: its address arithmetic is part of every step."""

import numpy as np
from numpy.typing import NDArray

from microbench.machine.arch import CUDA
from microbench.measure.launch import Bench, Expected, Launch
from microbench.point import Point
from microbench.probe import Build, Constant, Overhead, Probe, Sample
from microbench.results.curves import at
from microbench.shapes.accesses import load
from microbench.shapes.chain import COUNTER, FILLER, latency_metric, loop

CHAIN = 32
TRIPS = 32
FOOTPRINT_BYTES = 16 * 1024
STRIDE_WORDS = 32  # one use per 128-byte line


def builds(_: Point) -> tuple[Build, ...]:
    """32 loads, each waiting for the IMAD.WIDE that makes its address of the index loaded before."""
    arithmetic = Overhead(("IMAD.WIDE",), CHAIN, CHAIN)
    base = Overhead(("MOV", "LDC"), 0, 1)  # the ring's, once a trip
    return (Build((), loop(load(32, CHAIN), distance=1, overhead=(arithmetic, base, COUNTER, FILLER))),)


def run(bench: Bench, point: Point) -> list[Sample]:
    """Cycles per step of the index chase, warm in L1."""
    (kernel,) = bench.kernels(point)
    slots = np.arange(FOOTPRINT_BYTES // 4 // STRIDE_WORDS) * STRIDE_WORDS
    order = np.random.default_rng(3).permutation(slots)
    ring = np.zeros(FOOTPRINT_BYTES // 4, np.int32)
    ring[order] = np.roll(order, -1)
    ring[0] = ring[slots[0]]
    data, out = bench.array(ring), bench.empty(4 * bench.machine.sm_count)

    def walked(trips: int) -> NDArray[np.int32]:
        at = 0
        for _ in range(len(slots) + trips * CHAIN):
            at = int(ring[at])
        return np.full(bench.machine.sm_count, at, np.int32)

    def launch(trips: int) -> Launch:
        args = (data, np.int32(len(slots)), np.int32(trips), out)
        expected = Expected(out, lambda: walked(trips))
        return Launch(kernel, bench.machine.sm_count, 32, args, expects=(expected,))

    trips = bench.trips(TRIPS)
    cycles = bench.cycles(launch(trips), launch(2 * trips), operations=trips * CHAIN)
    return [cycles.sample("latency_cycles")]


PROBE = Probe(
    asks="How much longer is an L1 hit when the address is computed from an index?",
    archs=CUDA,
    metrics=(latency_metric("a load's result comes at least one L1 pipeline later", 16),),
    builds=builds,
    run=run,
    constants=(Constant("l1_index_latency_cycles", "latency_cycles", at()),),
)
