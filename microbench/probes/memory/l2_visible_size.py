"""How much of the L2 one SM sees as its own, and how much there is: one partition of two from the A100 on.

A single thread follows the ring. Up to the first knee its own partition holds everything; up to the second, lines that
the other partition holds are fetched from there; beyond, from DRAM. Before that its whole block walks the ring once:
one thread took 0.15 s a point for it, 77 of the suite's 313 s.
"""

from collections.abc import Callable

import numpy as np

from microbench.machine.arch import CUDA, KIB, Machine
from microbench.measure.launch import Bench, Launch
from microbench.point import Point
from microbench.probe import Axis, Constant, Probe, Sample, Twin
from microbench.results.curves import knee
from microbench.shapes.chase import BLOCK_THREADS, CHAIN, LINE_BYTES, METRICS, TRIPS, builds, ring_of

MIB = KIB * KIB


def footprints() -> tuple[int, ...]:
    """2 MiB to 160 MiB: six to the octave, and from 16 MiB on 24, so that a knee is known to 3 %."""
    coarse = [2 * 2 ** (i / 6) for i in range(18)]
    fine = [16 * 2 ** (i / 24) for i in range(81)]
    return tuple(round(size * MIB / LINE_BYTES) * LINE_BYTES for size in (*coarse, *fine))


def run(bench: Bench, point: Point) -> list[Sample]:
    """Latency of one load of the only thread on the chip, each launch going on where the last one ended."""
    (kernel,) = bench.kernels(point)
    ring = ring_of(bench, bench.footprint(point["footprint_bytes"]), skip=BLOCK_THREADS)
    place, seconds = ring.places(1), ring.seconds()

    def launch(walk_steps: int, trips: int) -> Launch:
        args = (place, seconds, np.int32(walk_steps), np.int32(trips))
        expected = ring.walked(place, CHAIN + trips * CHAIN)
        return Launch(kernel, 1, BLOCK_THREADS, args, expects=(expected,))

    warm = launch(-(-ring.lines // BLOCK_THREADS), 0)
    bench.launch(warm, bench.clocks(warm))
    trips = bench.trips(TRIPS)
    cycles = bench.cycles(launch(0, trips), launch(0, 2 * trips), operations=trips * CHAIN)
    return cycles.latency()


def twin(chain: int) -> Callable[..., None]:
    from numba import cuda

    from microbench.compile.numba_ptx import chase_global, clock64, countdown, load_global, report, settle, store_global

    def kernel(places, seconds, walk_steps, trips, clocks):  # type: ignore[no-untyped-def]
        second = load_global(seconds + 8 * cuda.threadIdx.x)
        while walk_steps > 0:
            second = chase_global(second, 1)
            walk_steps = countdown(walk_steps)
        settle(second)
        if cuda.threadIdx.x == 0:
            place = places + 8 * cuda.blockIdx.x
            address = chase_global(load_global(place), chain)
            settle(address)
            start = clock64()
            while trips > 0:
                address = chase_global(address, chain)
                trips = countdown(trips)
            settle(address)
            end = clock64()
            store_global(place, address)
            report(clocks, start, end)

    return kernel


def far_beyond(machine: Machine, point: Point) -> str | None:
    """Half as much again as the whole L2 shows both knees."""
    l2_bytes = machine.l2_bytes or 32 * MIB
    return "beyond one and a half times the L2" if point["footprint_bytes"] > 1.5 * l2_bytes else None


PROBE = Probe(
    asks="Up to which footprint does a single SM find everything in its own part of the L2, and in the L2 at all?",
    archs=CUDA,
    axes=(Axis("footprint_bytes", footprints(), quick=footprints()[::6]),),
    metrics=METRICS,
    builds=builds,
    run=run,
    twin=Twin(twin, "void(int64, int64, int32, int32, int64)"),
    skip=far_beyond,
    constants=(
        Constant("l2_visible_size_bytes", "latency_cycles", knee(0, "footprint_bytes"), unit="bytes"),
        Constant("l2_size_bytes", "latency_cycles", knee(1, "footprint_bytes"), unit="bytes"),
    ),
)
