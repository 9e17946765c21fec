"""L1 read bandwidth: every SM reads its own 16 to 64 KiB again and again with 16-byte loads."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from microbench.machine.arch import CUDA, KIB
from microbench.measure.launch import Bench, Expected, Launch
from microbench.point import Point
from microbench.probe import Axis, Build, Constant, Probe, Sample, Twin
from microbench.results.curves import peak
from microbench.shapes.accesses import load
from microbench.shapes.stream import STREAMS, XORS_A_LOAD, defines, per_clk_metric, streaming, xor_by_thread

TRIPS = 64


def builds(point: Point) -> tuple[Build, ...]:
    """One build per number of loads in flight; two XORs a load keep every word alive."""
    stream = STREAMS[point["bytes_in_flight"]]
    contract = streaming(load(128, stream.flight), xors=XORS_A_LOAD * stream.flight, addresses=6, clocks=2)
    return (Build(defines(stream), contract),)


def run(bench: Bench, point: Point) -> list[Sample]:
    """Bytes per clock and SM; the first lap, which misses, cancels in the slope."""
    (kernel,) = bench.kernels(point)
    stream = STREAMS[point["bytes_in_flight"]]
    sms = bench.machine.sm_count
    memory, out = bench.empty(sms * stream.chunk_bytes), bench.empty(4 * sms * stream.threads)
    base, trips = np.uint64(memory.data.ptr), bench.trips(TRIPS)

    def launch(n: int) -> Launch:
        def read() -> NDArray[np.uint32]:
            sums = xor_by_thread(bench.host(memory).view(np.uint32), stream)
            return sums if n % 2 else np.zeros_like(sums)

        args = (base, np.int32(0), np.int32(n), out)
        return Launch(kernel, sms, stream.threads, args, expects=(Expected(out, read),))

    short, long = launch(trips), launch(2 * trips)
    cycles = bench.cycles(short, long, operations=1)
    return [cycles.inverse("bandwidth_bytes_per_clk_sm", trips * stream.chunk_bytes)]


def twin(flight: int, threads: int) -> Callable[..., None]:
    from numba import cuda, int32

    from microbench.compile.numba_ptx import clock64, countdown, report, settle, store_global, stream_global

    stride = 16 * threads

    def kernel(base, step, trips, out, clocks):  # type: ignore[no-untyped-def]
        mine = base + cuda.blockIdx.x * (stride * flight) + cuda.threadIdx.x * 16
        total = int32(0)
        start = clock64()
        while trips > 0:
            total = stream_global(mine, stride, flight, total)
            mine += step
            trips = countdown(trips)
        settle(total)
        end = clock64()
        store_global(out + 4 * (cuda.blockIdx.x * threads + cuda.threadIdx.x), total)
        report(clocks, start, end)

    return kernel


ONE_BLOCK = tuple(size for size in STREAMS if size <= 64 * KIB)

PROBE = Probe(
    asks="How many bytes does one SM read from its L1 per clock, and how many must be in flight?",
    archs=CUDA,
    axes=(Axis("bytes_in_flight", ONE_BLOCK),),
    metrics=(per_clk_metric("one 128-byte line a clock", lambda sm: sm.l1_bytes_per_clk),),
    builds=builds,
    run=run,
    twin=Twin(twin, "void(int64, int32, int32, int64, int64)"),
    constants=(Constant("l1_bandwidth_bytes_per_clk_sm", "bandwidth_bytes_per_clk_sm", peak("bytes_in_flight")),),
)
