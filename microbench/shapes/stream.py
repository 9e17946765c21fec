"""What the bandwidth probes share: how many bytes one SM keeps in flight, and with which launch.

Little's law: bandwidth = bytes in flight / latency, so each probe sweeps the bytes in flight and must go flat.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from microbench.bounds import limit
from microbench.machine.arch import KIB, Limits
from microbench.probe import Axis, Bound, Metric, OpCount, Overhead, SassContract
from microbench.shapes.chain import COUNT, FILLER, loop

LOAD_BYTES = 16


@dataclass(frozen=True)
class Stream:
    """`blocks` blocks of `threads` threads on one SM, each thread with `flight` 16-byte accesses in flight."""

    blocks: int
    threads: int
    flight: int

    @property
    def chunk_bytes(self) -> int:
        return self.threads * LOAD_BYTES * self.flight


# Bytes in flight per SM: few warps first, then more loads per thread; 1024 threads a block, two blocks at the end.
STREAMS = {
    4 * KIB: Stream(1, 256, 1),
    8 * KIB: Stream(1, 512, 1),
    16 * KIB: Stream(1, 1024, 1),
    32 * KIB: Stream(1, 1024, 2),
    64 * KIB: Stream(1, 1024, 4),
    128 * KIB: Stream(2, 1024, 4),
}

BYTES_IN_FLIGHT = Axis("bytes_in_flight", tuple(STREAMS), quick=(16 * KIB, 32 * KIB, 64 * KIB, 128 * KIB))
# The counter, the next address, and constants (HFMA2 and IMAD.MOV make them).
_ADDRESSES = (
    *COUNT,
    *("LEA", "SHF", "IADD", "IMAD", "IMAD.WIDE", "IMAD.X", "IMAD.MOV", "IMAD.SHL", "IMAD.IADD", "MOV", "UMOV", "HFMA2"),
    *("CS2R", "R2UR", "ULOP3", "USHF", "ULEA", "UIMAD", "ULDC", "LDC", "LDCU", "S2UR"),
)
XORS_A_LOAD = 2  # each takes two of the four loaded words


def streaming(
    *ops: OpCount, xors: int, addresses: int, masks: int = 0, distance: int | None = 0, clocks: Literal[0, 2] = 0
) -> SassContract:
    """A loop of accesses none of which waits for another, with so many XORs of what was loaded.

    `addresses` is the most that ptxas needs for counter, addresses and constants; `masks` the most LOP3 among them.
    """
    overhead = (Overhead(("LOP3",), xors, xors + masks), Overhead(_ADDRESSES, 2, addresses), FILLER)
    return loop(*ops, distance=distance, overhead=overhead, clocks=clocks)


def xor_by_thread(words: NDArray[np.uint32], stream: Stream) -> NDArray[np.uint32]:
    """(chunks, threads): what one thread's loads of a chunk come to, as the kernels reduce them."""
    chunks = words[: words.size // (stream.chunk_bytes // 4) * (stream.chunk_bytes // 4)]
    of_thread = chunks.reshape(-1, stream.flight, stream.threads, LOAD_BYTES // 4)
    sums: NDArray[np.uint32] = np.bitwise_xor.reduce(np.bitwise_xor.reduce(of_thread, axis=3), axis=1)
    return sums


def per_clk_metric(why: str, width: Callable[[Limits], float], documented: bool = True) -> Metric:
    """bandwidth_bytes_per_clk_sm, at most what one SM's path to a level is wide; `documented`: it gives that much."""
    return Metric("bandwidth_bytes_per_clk_sm", "B/clk/SM", Bound(why, upper=limit(width), documented=documented))


def defines(stream: Stream) -> tuple[tuple[str, int | str], ...]:
    return (("FLIGHT", stream.flight), ("THREADS", stream.threads))
