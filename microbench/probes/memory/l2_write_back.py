"""What a memset leaves to whoever reads next: an L2 full of changed lines, which go back to DRAM before others come.

The same kernel reads the same bytes behind a memset of four L2s, as calls were timed until 2026-11-26, and behind a
read of four L2s, which leaves lines that nobody changed. What it takes longer behind the memset, times the rate at
which it reads DRAM, is what was written back, in bytes that could have been read meanwhile. On an H200 that is 0.42
bytes for each byte read, up to three quarters of the L2, and from two L2s on 36 MB in all, of 63; on an H100 0.41, and
29 MB of 50. How soon they are paid for depends on who reads: a kernel that read 3.9 TB/s, where this one reads 4.5,
paid 0.55 for each byte at first, 37 MB in all.
"""

import numpy as np
from numpy.typing import NDArray

from microbench.machine.arch import CUDA, KIB, Machine
from microbench.measure.alternate import FLUSHED_L2S
from microbench.measure.launch import WARP, Bench, Expected, Launch
from microbench.point import Point
from microbench.probe import Axis, Bound, Build, Constant, Metric, Probe, Sample
from microbench.results.curves import over
from microbench.shapes.accesses import load_past_l1
from microbench.shapes.stream import STREAMS, XORS_A_LOAD, defines, streaming, xor_by_thread

STREAM = STREAMS[128 * KIB]
UNKNOWN_L2_BYTES = 2**26
# Shares of the L2 that are read: some that it holds with much to spare, and some past which nothing old is left.
INSIDE, PAST = (0.5, 0.75), (2.0, 3.0)
SHARES = (0.25, *INSIDE, 1.0, 1.5, *PAST)
MOST_RATIO = 2.0
LEAST_S = 1e-9  # less no event tells from nothing, which is what an emulator's times differ by


def builds(_: Point) -> tuple[Build, ...]:
    """One kernel: who ran before is the host's choice."""
    loads = load_past_l1(128, STREAM.flight)
    return (Build(defines(STREAM), streaming(loads, xors=XORS_A_LOAD * STREAM.flight, addresses=4)),)


def run(bench: Bench, point: Point) -> list[Sample]:
    """Times behind changed lines and behind others, and the bytes that their difference stands for."""
    (kernel,) = bench.kernels(point)
    l2_bytes, grid = bench.machine.l2_bytes or UNKNOWN_L2_BYTES, bench.machine.sm_count * STREAM.blocks
    flush_bytes = bench.footprint(FLUSHED_L2S * l2_bytes)
    nbytes = whole_chunks(bench.footprint(read_bytes(l2_bytes, point)))
    source = bench.inputs("bits", nbytes + flush_bytes, np.uint8)
    other, out = bench.empty(flush_bytes), bench.empty(4 * grid * STREAM.threads // WARP)

    def read(nbytes: int) -> Launch:
        chunks = nbytes // STREAM.chunk_bytes

        def sums() -> NDArray[np.uint32]:
            return by_warp(bench.host(source)[: chunks * STREAM.chunk_bytes].view(np.uint32), grid)

        args = (np.uint64(source.data.ptr), np.int32(chunks), out)
        return Launch(kernel, grid, STREAM.threads, args, expects=(Expected(out, sums),))

    replaces = np.int32(flush_bytes // STREAM.chunk_bytes)
    cleaning = Launch(kernel, grid, STREAM.threads, (np.uint64(other.data.ptr), replaces, out))
    dirty = bench.timed(read(nbytes), behind=lambda: other.fill(1))
    clean = bench.timed(read(nbytes), behind=lambda: bench.launch(cleaning))
    far = bench.timed(read(nbytes + flush_bytes), behind=lambda: bench.launch(cleaning))
    bytes_per_s = flush_bytes // STREAM.chunk_bytes * STREAM.chunk_bytes / max(far.value - clean.value, LEAST_S)

    def back(later_s: float) -> float:
        return max(later_s, LEAST_S) * bytes_per_s

    middle, low, high = back(dirty.value - clean.value), back(dirty.low - clean.high), back(dirty.high - clean.low)
    return [
        Sample("write_back_ratio", middle / nbytes, low / nbytes, high / nbytes, dirty.n, dirty.clock_mhz),
        Sample("write_back_bytes", middle, low, high, dirty.n, dirty.clock_mhz),
        dirty.sample("behind_memset_ns", 1e9),
        clean.sample("behind_read_ns", 1e9),
    ]


def read_bytes(l2_bytes: int, point: Point) -> int:
    """Whole chunks, one at least."""
    return whole_chunks(round(point["l2_share"] * l2_bytes))


def whole_chunks(nbytes: int) -> int:
    return max(1, nbytes // STREAM.chunk_bytes) * STREAM.chunk_bytes


def by_warp(words: NDArray[np.uint32], grid: int) -> NDArray[np.uint32]:
    """What each warp of `grid` blocks leaves of so many words: block after block takes a chunk."""
    threads = xor_by_thread(words, STREAM)
    chunks = np.bitwise_xor.reduce(threads.reshape(len(threads), -1, WARP), axis=2)
    whole: NDArray[np.uint32] = np.stack([np.bitwise_xor.reduce(chunks[block::grid], axis=0) for block in range(grid)])
    return whole


def least_ns(machine: Machine, point: Point) -> float | None:
    """Every byte comes from DRAM."""
    if machine.dram_bytes_per_s is None or machine.l2_bytes is None:
        return None
    return 1e9 * read_bytes(machine.l2_bytes, point) / machine.dram_bytes_per_s


def most_bytes(machine: Machine, _: Point) -> float | None:
    """All that the L2 holds."""
    return None if machine.l2_bytes is None else MOST_RATIO * machine.l2_bytes


BUS = Bound("bus width x data rate", lower=least_ns)
REPLACED = "a line that comes replaces one, which DRAM takes half as fast as it gives at the worst"
PROBE = Probe(
    asks="How many bytes does the L2 write back to DRAM for each byte that is read behind a memset?",
    archs=CUDA,
    axes=(Axis("l2_share", SHARES, quick=(*INSIDE, *PAST)),),
    metrics=(
        Metric("write_back_ratio", "ratio", Bound(REPLACED, upper=MOST_RATIO)),
        Metric("write_back_bytes", "bytes", Bound(f"{REPLACED}, and the L2 has no more", upper=most_bytes)),
        Metric("behind_memset_ns", "ns", BUS),
        Metric("behind_read_ns", "ns", BUS),
    ),
    builds=builds,
    run=run,
    constants=(
        Constant("l2_write_back_ratio", "write_back_ratio", over("l2_share", INSIDE[0], INSIDE[-1])),
        Constant("l2_write_back_bytes", "write_back_bytes", over("l2_share", PAST[0], PAST[-1])),
    ),
)
