"""Shared-memory bandwidth by access width, every SM full, no bank conflict."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from microbench.machine.arch import CUDA
from microbench.measure.launch import Bench, Expected, Launch
from microbench.point import Point
from microbench.probe import Axis, Build, Constant, Overhead, Probe, Sample, Twin
from microbench.results.curves import at
from microbench.shapes.accesses import load_shared
from microbench.shapes.chain import COUNTER, FILLER, loop
from microbench.shapes.stream import per_clk_metric

FLIGHT = 8
THREADS = 1024
TRIPS = 128
WORD = 2654435761  # times its number is each word of shared memory


def builds(point: Point) -> tuple[Build, ...]:
    """8 loads of this width a trip, and the XORs that keep every word alive."""
    width = point["width_bytes"]
    xors = Overhead(("LOP3",), FLIGHT * width // 8, FLIGHT * width // 8)  # each takes two words
    contract = loop(load_shared(8 * width, FLIGHT), distance=0, overhead=(xors, COUNTER, FILLER))
    return (Build((("WIDTH", width), ("THREADS", THREADS), ("FLIGHT", FLIGHT)), contract),)


def run(bench: Bench, point: Point) -> list[Sample]:
    """Bytes per clock and SM."""
    (kernel,) = bench.kernels(point)
    sms, width = bench.machine.sm_count, point["width_bytes"]
    out = bench.empty(4 * sms * THREADS)
    trips = bench.trips(TRIPS)

    def own() -> NDArray[np.uint32]:
        """What each thread loads before the loop, whose even number of loads come to nothing by XOR."""
        words = np.arange(THREADS * width // 4, dtype=np.uint32) * np.uint32(WORD)
        return np.tile(np.bitwise_xor.reduce(words.reshape(THREADS, -1), axis=1), sms)

    short, long = (
        Launch(kernel, sms, THREADS, (np.int32(n), out), THREADS * width, (Expected(out, own),))
        for n in (trips, 2 * trips)
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
            ptx.store_shared(base + word * 4, word * WORD)
            word = int32(word + threads)
        cuda.syncthreads()
        mine = int32(base + cuda.threadIdx.x * width)
        total = ptx.stream_shared(mine, width, words, 1, int32(0))
        ptx.settle(total)
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
    metrics=(per_clk_metric("32 banks of 4 bytes, half of them a clock on Turing", lambda sm: sm.smem_bytes_per_clk),),
    builds=builds,
    run=run,
    twin=Twin(twin, "void(int32, int64, int64)"),
    constants=(Constant("smem_bandwidth_bytes_per_clk_sm", "bandwidth_bytes_per_clk_sm", at(width_bytes=16)),),
)
