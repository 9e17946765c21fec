"""Shared-memory bandwidth by access width, every SM full, no bank conflict."""

from collections.abc import Callable

import numpy as np

from microbench.machine.arch import CUDA
from microbench.measure.launch import Bench, Expected, Launch
from microbench.point import Point
from microbench.probe import Axis, Build, Constant, OpCount, Probe, Sample, Twin
from microbench.results.curves import at
from microbench.shapes.chain import loop
from microbench.shapes.stream import per_clk_metric

FLIGHT = 8
THREADS = 1024
TRIPS = 128
SUFFIX = {4: "LDS", 8: "LDS.64", 16: "LDS.128"}


def builds(point: Point) -> tuple[Build, ...]:
    """8 loads of this width a trip, and the XORs that keep every word alive."""
    width = point["width_bytes"]
    contract = loop(OpCount(SUFFIX[width], FLIGHT), overhead=("LOP3",), overhead_max=FLIGHT * width // 4)
    return (Build((("WIDTH", width), ("THREADS", THREADS), ("FLIGHT", FLIGHT)), contract),)


def run(bench: Bench, point: Point) -> list[Sample]:
    """Bytes per clock and SM."""
    (kernel,) = bench.kernels(point)
    sms, width = bench.machine.sm_count, point["width_bytes"]
    out = bench.empty(4 * sms * THREADS)
    trips = bench.trips(TRIPS)
    # An even number of loads of the same word come to nothing by XOR.
    nothing = Expected(out, lambda: np.zeros(sms * THREADS, np.uint32))
    short, long = (
        Launch(kernel, sms, THREADS, (np.int32(n), out), THREADS * width, (nothing,)) for n in (trips, 2 * trips)
    )
    cycles = bench.cycles(short, long, operations=1)
    return [cycles.inverse("bandwidth_bytes_per_clk_sm", trips * FLIGHT * THREADS * width)]


def twin(width: int, threads: int, flight: int) -> Callable[..., None]:
    from numba import cuda, int32

    from microbench.compile import numba_ptx as ptx

    words = width // 4

    def kernel(trips, out, clocks):  # type: ignore[no-untyped-def]
        base = ptx.shared_base()
        word = cuda.threadIdx.x
        while word < threads * words:
            ptx.store_shared(base + word * 4, word * 2654435761)
            word = int32(word + threads)
        cuda.syncthreads()
        mine = int32(base + cuda.threadIdx.x * width)
        total = int32(0)
        start = ptx.clock64()
        while trips > 0:
            total = ptx.stream_shared(mine, width, words, flight, total)
            trips = ptx.countdown(trips)
        ptx.settle(total)
        end = ptx.clock64()
        ptx.store_global(out + 4 * (cuda.blockIdx.x * threads + cuda.threadIdx.x), total)
        ptx.report(clocks, start, end)

    return kernel


PROBE = Probe(
    asks="How many bytes does one SM read from shared memory per clock, by access width?",
    archs=CUDA,
    axes=(Axis("width_bytes", (4, 8, 16)),),
    metrics=(per_clk_metric("32 banks of 4 bytes", lambda sm: sm.smem_bytes_per_clk),),
    builds=builds,
    run=run,
    twin=Twin(twin, "void(int32, int64, int64)"),
    constants=(Constant("smem_bandwidth_bytes_per_clk_sm", "bandwidth_bytes_per_clk_sm", at(width_bytes=16)),),
)
