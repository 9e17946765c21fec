"""Shared-memory latency, by raw address and by index: the same memory, one LEA apart since Hopper."""

from collections.abc import Callable

import numpy as np

from microbench.machine.arch import CUDA
from microbench.measure.launch import Bench, Expected, Launch
from microbench.point import Point
from microbench.probe import Axis, Build, Constant, Overhead, Probe, Sample, Twin
from microbench.results.curves import at
from microbench.shapes.accesses import load_shared
from microbench.shapes.chain import COUNTER, FILLER, latency_metric, loop

CHAIN = 64
TRIPS = 32
SMEM_BYTES = 4096
WORD_BYTES = 4
HOP_WORDS = 37  # coprime to the 1024 words of the ring: every bank is met


def builds(point: Point) -> tuple[Build, ...]:
    """64 LDS, each waiting for the one before; by index, for one instruction of address arithmetic more."""
    index = point["chase"] == "index"
    arithmetic = (Overhead(("LEA", "IMAD"), CHAIN, CHAIN),) if index else ()
    contract = loop(load_shared(32, CHAIN), distance=1, overhead=(*arithmetic, COUNTER, FILLER))
    return (Build((("INDEX", int(index)),), contract),)


def run(bench: Bench, point: Point) -> list[Sample]:
    """Cycles per load of one thread on every SM."""
    (kernel,) = bench.kernels(point)
    sms = bench.machine.sm_count
    out = bench.empty(4 * sms)

    def launch(trips: int) -> Launch:
        word = HOP_WORDS * trips * CHAIN % (SMEM_BYTES // WORD_BYTES)
        at = word if point["chase"] == "index" else bench.shared_base + word * WORD_BYTES
        expected = Expected(out, lambda: np.full(sms, at, np.uint32))
        args = (np.int32(HOP_WORDS), np.int32(trips), out)
        return Launch(kernel, sms, 32, args, SMEM_BYTES, (expected,))

    trips = bench.trips(TRIPS)
    cycles = bench.cycles(launch(trips), launch(2 * trips), operations=trips * CHAIN)
    return [cycles.sample("latency_cycles")]


def twin(index: int) -> Callable[..., None]:
    from numba import cuda, int32

    from microbench.compile import numba_ptx as ptx

    chain, words = 64, 1024

    def kernel(hop, trips, out, clocks):  # type: ignore[no-untyped-def]
        base = ptx.shared_base()
        word = cuda.threadIdx.x
        while word < words:
            following = (word + hop) % words
            ptx.store_shared(base + word * 4, following if index else base + following * 4)
            word = int32(word + 32)
        cuda.syncthreads()
        if cuda.threadIdx.x == 0:
            at = int32(0) if index else base
            ptx.settle(at)
            start = ptx.clock64()
            while trips > 0:
                at = ptx.chase_shared_index(base, at, chain) if index else ptx.chase_shared(at, 4, chain)
                trips = ptx.countdown(trips)
            ptx.settle(at)
            end = ptx.clock64()
            ptx.store_global(out + 4 * cuda.blockIdx.x, at)
            ptx.report(clocks, start, end)

    return kernel


PROBE = Probe(
    asks="How long does a load from shared memory take, by raw address and by index?",
    archs=CUDA,
    axes=(Axis("chase", ("raw", "index")),),
    metrics=(latency_metric("a load's result comes at least one shared-memory pipeline later", 12),),
    builds=builds,
    run=run,
    twin=Twin(twin, "void(int32, int32, int64, int64)"),
    constants=(
        Constant("smem_latency_cycles", "latency_cycles", at(chase="raw")),
        Constant("smem_index_latency_cycles", "latency_cycles", at(chase="index")),
    ),
)
