"""DRAM bandwidth, reading, writing and copying 1 GiB, against the bytes that each SM keeps in flight.

Nothing waits for a store, so what is in flight says little of writing: there each block stores one chunk of that size,
and the order of the chunks decides. Blocks that stay and take every 132nd chunk drift apart and write to more rows of
DRAM at once: on an H200 4.1 to 4.3 TB/s, where a block for each chunk, in the order of the grid, gave 4.5 to 4.6.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from microbench.machine.arch import CUDA, KIB, Machine
from microbench.measure.launch import Bench, Expected, Launch
from microbench.point import Point
from microbench.probe import Axis, Bound, Build, Constant, Metric, Probe, Sample, Twin
from microbench.results.curves import peak
from microbench.shapes.accesses import load_past_l1, store
from microbench.shapes.stream import BYTES_IN_FLIGHT, STREAMS, XORS_A_LOAD, Stream, defines, streaming, xor_by_thread

MODES = {"read": 0, "write": 1, "copy": 2}
FOOTPRINT_BYTES = KIB * KIB * KIB  # 20 times the largest L2 of the table, so that nothing is found there


def builds(point: Point) -> tuple[Build, ...]:
    """Loads, stores or both, FLIGHT of each; the modes are separate builds."""
    stream, mode = STREAMS[point["bytes_in_flight"]], point["mode"]
    flight = stream.flight
    loads, stores = load_past_l1(128, flight), store(128, flight)
    contract = {
        "read": streaming(loads, xors=XORS_A_LOAD * flight, addresses=4),
        "write": streaming(stores, xors=0, addresses=4 * flight + 4),
        "copy": streaming(loads, stores, xors=0, addresses=9, masks=1, distance=None),
    }[mode]
    return (Build((*defines(stream), ("MODE", MODES[mode])), contract),)


def run(bench: Bench, point: Point) -> list[Sample]:
    """Bytes moved per second: a copy counts what it reads and what it writes."""
    (kernel,) = bench.kernels(point)
    stream, mode = STREAMS[point["bytes_in_flight"]], point["mode"]
    half, footprint = mode == "copy", bench.footprint(FOOTPRINT_BYTES)
    source = bench.inputs("bits", footprint, np.uint8)
    target = bench.empty(footprint // (2 if half else 1)) if mode != "read" else source
    chunks = footprint // stream.chunk_bytes // (2 if half else 1)
    grid = chunks if mode == "write" else bench.machine.sm_count * stream.blocks
    out = bench.empty(4 * grid * stream.threads if mode == "read" else 4)
    args = (np.uint64(source.data.ptr), np.uint64(target.data.ptr), np.int32(chunks), out)

    def read() -> NDArray[np.uint32]:
        sums = xor_by_thread(bench.host(source).view(np.uint32), stream)
        return np.stack([np.bitwise_xor.reduce(sums[block::grid], axis=0) for block in range(grid)])

    expected = {
        "read": Expected(out, read),
        "write": Expected(target, lambda: written(stream, grid, chunks)),
        "copy": Expected(target, lambda: bench.host(source)[: footprint // 2]),
    }
    seconds = bench.timed(Launch(kernel, grid, stream.threads, args, expects=(expected[mode],)))
    return [seconds.inverse("bandwidth_bytes_per_s", footprint)]


def written(stream: Stream, grid: int, chunks: int) -> NDArray[np.uint32]:
    """What the mode `write` leaves: in each 16 bytes its chunk, thread, block and number among the thread's stores."""
    chunk, store, thread = np.meshgrid(*map(np.arange, (chunks, stream.flight, stream.threads)), indexing="ij")
    return np.stack([chunk, thread, chunk % grid, store], axis=-1).astype(np.uint32)


def bus(machine: Machine, _: Point) -> float | None:
    """Bus width times data rate."""
    return machine.dram_bytes_per_s


def too_large(machine: Machine, _: Point) -> str | None:
    """Source and target together must leave room for others."""
    return "needs 8 GB of GPU memory" if machine.dram_bytes < 8 * FOOTPRINT_BYTES * 0.95 else None


def twin(flight: int, threads: int, mode: int) -> Callable[..., None]:
    from numba import cuda, int32

    from microbench.compile.numba_ptx import copy_global, fill_global, store_global, stream_global_cg

    stride = 16 * threads
    chunk_bytes = stride * flight

    def read(source, target, chunks, out):  # type: ignore[no-untyped-def]
        total = int32(0)
        chunk = cuda.blockIdx.x
        while chunk < chunks:
            total = stream_global_cg(source + cuda.threadIdx.x * 16 + chunk * chunk_bytes, stride, flight, total)
            chunk = int32(chunk + cuda.gridDim.x)
        store_global(out + 4 * (cuda.blockIdx.x * threads + cuda.threadIdx.x), total)

    def write(source, target, chunks, out):  # type: ignore[no-untyped-def]
        chunk = cuda.blockIdx.x
        while chunk < chunks:
            mine = target + cuda.threadIdx.x * 16 + chunk * chunk_bytes
            fill_global(mine, stride, flight, chunk, cuda.threadIdx.x, cuda.blockIdx.x)
            chunk = int32(chunk + cuda.gridDim.x)

    def copy(source, target, chunks, out):  # type: ignore[no-untyped-def]
        chunk = cuda.blockIdx.x
        while chunk < chunks:
            offset = cuda.threadIdx.x * 16 + chunk * chunk_bytes
            copy_global(source + offset, target + offset, stride, flight)
            chunk = int32(chunk + cuda.gridDim.x)

    return (read, write, copy)[mode]


PROBE = Probe(
    asks="How fast is DRAM read, written and copied, and how many bytes must be in flight?",
    archs=CUDA,
    axes=(Axis("mode", tuple(MODES)), BYTES_IN_FLIGHT),
    metrics=(Metric("bandwidth_bytes_per_s", "B/s", Bound("bus width x data rate", upper=bus)),),
    builds=builds,
    run=run,
    twin=Twin(twin, "void(int64, int64, int32, int64)"),
    skip=too_large,
    since="20261123T133",  # a block for each chunk that is written
    constants=(
        Constant("dram_bandwidth_bytes_per_s", "bandwidth_bytes_per_s", peak("bytes_in_flight", mode="read")),
        Constant("dram_write_bandwidth_bytes_per_s", "bandwidth_bytes_per_s", peak("bytes_in_flight", mode="write")),
        Constant("dram_copy_bandwidth_bytes_per_s", "bandwidth_bytes_per_s", peak("bytes_in_flight", mode="copy")),
    ),
)
