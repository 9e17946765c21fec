"""What an n-way bank conflict costs, by access width: as latency, and as the interval between loads in a row."""

from collections.abc import Callable
from functools import partial

import numpy as np
from numpy.typing import NDArray

from microbench.machine.arch import CUDA, Machine
from microbench.measure.launch import Bench, Expected, Launch
from microbench.point import Point
from microbench.probe import Axis, Bound, Build, Constant, Metric, Overhead, Probe, Sample, SassContract, Twin
from microbench.results.curves import slope
from microbench.shapes.accesses import load_shared
from microbench.shapes.chain import COUNTER, FILLER, loop

# Dependent loads, and independent ones: more of those in flight than 8 of 16 bytes would not fit 64 registers.
CHAINS = (32, 8)
TRIPS = 16
WARPS = 32
BANKS_BYTES = 128
# Of two loads in a row: the first word makes the next address, the others go out. The twin lets those be.
CHAINED_XORS = {4: 0, 8: 1, 16: 3}


def phases(point: Point) -> int:
    """A warp's access of 4, 8 or 16 bytes a lane goes in 1, 2 or 4 phases of 128 bytes, each with its own conflicts."""
    return int(point["width_bytes"]) // 4 * int(point["ways"])


def builds(point: Point) -> tuple[Build, ...]:
    """A dependent chain for the latency; independent loads, each kept alive by an XOR, for the interval."""
    width, ways = point["width_bytes"], point["ways"]
    shape = (("WIDTH", width), ("WAYS", ways))

    def contract(loads: int, distance: int, fewest: int, xors: int) -> SassContract:
        kept = Overhead(("LOP3",), fewest, xors)
        return loop(load_shared(8 * width, loads), distance=distance, overhead=(kept, COUNTER, FILLER))

    dependent, independent = CHAINS
    return (
        Build(
            (*shape, ("CHAIN", dependent), ("DEPENDENT", 1), ("THREADS", 32)),
            contract(dependent, 1, 0, dependent * CHAINED_XORS[width] // 2),
        ),
        Build(
            (*shape, ("CHAIN", independent), ("DEPENDENT", 0), ("THREADS", 32 * WARPS)),
            contract(independent, 0, independent // 2, independent * width // 8),
        ),
    )


def run(bench: Bench, point: Point) -> list[Sample]:
    """Cycles per warp's load: one warp's dependent chain, and 32 warps of independent loads, on every SM."""
    sms = bench.machine.sm_count
    out = bench.empty(4 * WARPS * 32 * sms)
    samples = []
    metrics = ("latency_cycles", "interval_cycles")
    for kernel, metric, chain, warps in zip(bench.kernels(point), metrics, CHAINS, (1, WARPS), strict=True):
        trips = bench.trips(TRIPS)
        # A load gives the address that it came from, and an even number of them come to nothing by XOR.
        expected = Expected(out, partial(np.tile, bench.shared_base + addresses(point), sms * warps))
        short, long = (
            Launch(kernel, sms, 32 * warps, (np.int32(n), out), 32 * BANKS_BYTES, (expected,))
            for n in (trips, 2 * trips)
        )
        samples.append(bench.cycles(short, long, operations=trips * chain * warps).sample(metric))
    return samples


def addresses(point: Point) -> NDArray[np.uint32]:
    """Where each lane of a warp reads in shared memory: `ways` lanes of a phase meet in a bank."""
    width = int(point["width_bytes"])
    columns = BANKS_BYTES // width // int(point["ways"])
    lanes = np.arange(32, dtype=np.uint32)
    return lanes % columns * width + lanes // columns * BANKS_BYTES


def too_wide(_: Machine, point: Point) -> str | None:
    """A phase of 16-byte accesses has 8 lanes: no more can meet in a bank."""
    lanes = BANKS_BYTES // int(point["width_bytes"])
    return f"a phase has only {lanes} lanes" if point["ways"] > lanes else None


def one_phase_a_clock(_: Machine, point: Point) -> float:
    """The pipe takes one phase a clock at best."""
    return float(phases(point))


def twin(width: int, ways: int, chain: int, dependent: int, threads: int) -> Callable[..., None]:
    from numba import cuda, int32

    from microbench.compile import numba_ptx as ptx

    row = 128
    columns, words = row // width // ways, width // 4

    def kernel(trips, out, clocks):  # type: ignore[no-untyped-def]
        lane = cuda.threadIdx.x % 32
        at = int32(ptx.shared_base() + lane % columns * width + lane // columns * row)
        for word in range(words):
            ptx.store_shared(at + word * 4, at)
        cuda.syncthreads()
        total = int32(0)
        ptx.settle(at)
        start = ptx.clock64()
        while trips > 0:
            if dependent:
                at = ptx.chase_shared(at, width, chain)
            else:
                total = ptx.stream_shared(at, width, 1, chain, total)
            trips = ptx.countdown(trips)
        ptx.settle(at)
        ptx.settle(total)
        end = ptx.clock64()
        ptx.store_global(out + 4 * (cuda.blockIdx.x * threads + cuda.threadIdx.x), int32(at ^ total))
        ptx.report(clocks, start, end)

    return kernel


PROBE = Probe(
    asks="What does an n-way bank conflict cost, in latency and in throughput, by access width?",
    archs=CUDA,
    axes=(Axis("width_bytes", (4, 8, 16), quick=(4,)), Axis("ways", (1, 2, 4, 8, 16, 32), quick=(1, 2, 8))),
    metrics=(
        Metric("latency_cycles", "cycles", Bound("one phase a clock", lower=one_phase_a_clock)),
        Metric("interval_cycles", "cycles", Bound("one phase a clock", lower=one_phase_a_clock)),
    ),
    builds=builds,
    run=run,
    twin=Twin(twin, "void(int32, int64, int64)"),
    skip=too_wide,
    constants=(
        Constant("smem_conflict_latency_cycles_per_way", "latency_cycles", slope("ways", width_bytes=4)),
        Constant("smem_conflict_interval_cycles_per_way", "interval_cycles", slope("ways", width_bytes=4)),
    ),
)
