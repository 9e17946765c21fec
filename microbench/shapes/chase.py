"""What the pointer-chase probes share: the ring of raw addresses, its warm-up, and the build."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from microbench.machine.arch import KIB, Machine
from microbench.measure.launch import Bench, Expected, Launch, Measured
from microbench.point import Point
from microbench.probe import Bound, Build, Metric, Twin
from microbench.shapes.accesses import load
from microbench.shapes.chain import latency_metric, loop

LINE_BYTES = 128
# Where a ring begins decides which sets of the L1 its last lines fall into: on an H200 a ring that began at a multiple
# of 64 KiB hit up to 240 KiB, one 32 KiB further on to 224 KiB only, whatever its order (two orders at 17 places).
ALIGNMENT_BYTES = 256 * KIB
CHAIN = 32
TRIPS = 64
L1_AT_MOST = 512 * KIB
# One thread chases, the others of its block exit at once: the driver sets shared memory aside for every block that
# could be resident, 1 KiB each, and small blocks would cost up to 32 KiB of L1 (probe l1_size).
BLOCK_THREADS = 1024


def builds(_: Point) -> tuple[Build, ...]:
    """One kernel serves every footprint: 32 dependent 64-bit loads a trip."""
    return (Build((("CHAIN", CHAIN),), loop(load(64, CHAIN), distance=1)),)


def too_large(machine: Machine, point: Point) -> str | None:
    """A quarter of the memory is the most that a probe takes."""
    return "larger than a quarter of this GPU's memory" if point["footprint_bytes"] > machine.dram_bytes / 4 else None


@dataclass(frozen=True)
class Ring:
    """Every 128-byte line of a piece of memory once, in random order: the first word of each holds the next address.

    With `skip` the second word holds the address of the second word of the line so many places on.

    addresses   device array of the lines, in the ring's order
    """

    bench: Bench
    memory: Any
    addresses: Any
    skip: int

    @property
    def lines(self) -> int:
        return len(self.addresses)

    def places(self, count: int) -> Any:
        """The addresses of lines evenly spaced: where so many chasers start, and where they leave off."""
        return self.addresses[(self.bench.arrays.arange(count) * self.lines) // count].copy()

    def seconds(self) -> Any:
        """The addresses of the second words of the first `skip` lines."""
        return self.addresses[self.bench.arrays.arange(self.skip) % self.lines] + np.uint64(8)

    def walked(self, places: Any, steps: int) -> Expected:
        """Each chaser as many places on, from where the last launch left it."""

        def values() -> NDArray[np.uint64]:
            ring = self.bench.host(self.addresses)
            at = {int(address): index for index, address in enumerate(ring)}
            return np.array(
                [ring[(at[int(place)] + steps) % self.lines] for place in self.bench.host(places)], np.uint64
            )

        return Expected(places, values)


def ring_of(bench: Bench, nbytes: int, skip: int = 0) -> Ring:
    """A ring over new device memory of so many bytes, from a multiple of ALIGNMENT_BYTES on."""
    lines = nbytes // LINE_BYTES
    memory = bench.empty(nbytes, ALIGNMENT_BYTES)
    order = bench.arrays.random.permutation(lines)
    addresses = (order.astype(np.uint64) * LINE_BYTES) + np.uint64(memory.data.ptr)
    words = memory.reshape(lines, LINE_BYTES // 8)
    words[order, 0] = bench.arrays.roll(addresses, -1)
    if skip:
        words[order, 1] = bench.arrays.roll(addresses, -skip) + np.uint64(8)
    return Ring(bench, memory, addresses, skip)


def chase(bench: Bench, point: Point, chasers: int, block_threads: int = BLOCK_THREADS) -> Measured:
    """Cycles per load of `chasers` threads, one a block, that start evenly spaced on one ring."""
    (kernel,) = bench.kernels(point)
    nbytes = bench.footprint(point["footprint_bytes"])
    ring = ring_of(bench, nbytes)
    places = ring.places(chasers)

    def launch(warm: int, trips: int) -> Launch:
        args = (places, np.int32(warm), np.int32(trips))
        return Launch(kernel, chasers, block_threads, args, expects=(ring.walked(places, warm + trips * CHAIN),))

    # The L1 forgets between launches, so a ring that fits is walked in each; a larger one is walked once, here.
    in_l1 = nbytes <= L1_AT_MOST
    bench.launch(launch(-(-ring.lines // chasers) + CHAIN, 1), bench.clocks(launch(0, 1)))
    warm, trips = ring.lines if in_l1 else CHAIN, bench.trips(TRIPS)
    return bench.cycles(launch(warm, trips), launch(warm, 2 * trips), operations=trips * CHAIN)


def chase_kernel(chain: int) -> Callable[..., None]:
    from numba import cuda

    from microbench.compile.numba_ptx import chase_global, clock64, countdown, load_global, report, settle, store_global

    def kernel(places, warm_steps, trips, clocks):  # type: ignore[no-untyped-def]
        if cuda.threadIdx.x == 0:
            place = places + 8 * cuda.blockIdx.x
            address = load_global(place)
            while warm_steps > 0:
                address = chase_global(address, 1)
                warm_steps = countdown(warm_steps)
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


TWIN = Twin(chase_kernel, "void(int64, int32, int32, int64)")


WHY, LEAST_CYCLES = "a load's result comes at least one L1 pipeline later", 16


def least_ns(machine: Machine, _: Point) -> float | None:
    return LEAST_CYCLES * 1e9 / machine.clock_hz if machine.clock_hz else None


# What a chase beyond the SM gives: there other clocks count too, so that a time says more than cycles over the SM's.
METRICS = (
    latency_metric(WHY, LEAST_CYCLES),
    Metric("latency_ns", "ns", Bound(f"{WHY}, at the highest clock", lower=least_ns)),
)
