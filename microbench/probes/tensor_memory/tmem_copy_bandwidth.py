"""tcgen05.cp from shared memory to tensor memory, by shape: the way of the scales of block-scaled types.

Bytes are those read of one SM's shared memory: a shape that hands its rows to two or four quarters of the lanes writes
more. Of a pair (cta_group::2) one block asks, and each copies from its own shared memory to its own tensor memory.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from microbench.bounds import limit
from microbench.machine.arch import with_feature
from microbench.measure.launch import Bench, Expected, Launch
from microbench.point import Point
from microbench.probe import Axis, Bound, Build, Constant, Metric, OpCount, Overhead, Probe, Sample
from microbench.results.curves import at
from microbench.shapes.chain import COUNTER, loop

TRIPS = 512
PER_TRIP = 8
LANES = np.arange(128)


@dataclass(frozen=True)
class Copy:
    """One shape: rows and their bytes, the modifier of its SASS, and the row that each lane gets."""

    rows: int
    row_bytes: int
    modifier: str
    row_of_lane: Callable[[NDArray[np.int64]], NDArray[np.int64]]


COPIES = {
    "128x256b": Copy(128, 32, "", lambda lane: lane),
    "128x128b": Copy(128, 16, ".128dp128bit", lambda lane: lane),
    "64x128b_02_13": Copy(64, 16, ".2x64dp128bit_lw02_lw13", lambda lane: lane % 64),
    "64x128b_01_23": Copy(64, 16, ".2x64dp128bit_lw01_lw23", lambda lane: lane // 64 * 32 + lane % 32),
    "32x128b": Copy(32, 16, ".4x32dp128bit", lambda lane: lane % 32),
}


def builds(point: Point) -> tuple[Build, ...]:
    """Copies, the counter, and the upper halves of descriptors, which ptxas writes anew each trip beside the copies."""
    copy = COPIES[point["shape"]]
    pair = ".2CTA" if point["blocks"] == 2 else ""
    copies, descriptors = OpCount(f"UTCCP.T.S{pair}{copy.modifier}", PER_TRIP), Overhead(("UMOV",), 0, 2 * PER_TRIP)
    defines: tuple[tuple[str, int | str], ...] = (
        ("COPY", f"tcgen05_cp_{point['shape']}"),
        ("ROWS", copy.rows),
        ("ROW_BYTES", copy.row_bytes),
        ("GROUP", int(point["blocks"])),
    )
    return (Build(defines, loop(copies, overhead=(COUNTER, descriptors))),)


def checksums(copy: Copy, image: NDArray[np.uint32]) -> NDArray[np.uint32]:
    """What each thread makes of the words of its lane, column by column."""
    cores = image.reshape(PER_TRIP, copy.rows // 8, copy.row_bytes // 16, 8, 4)
    rows = cores.swapaxes(2, 3).reshape(PER_TRIP, copy.rows, copy.row_bytes // 4)
    sums = np.zeros(len(LANES), np.uint32)
    for tile in rows:
        for column in tile[copy.row_of_lane(LANES)].T:
            sums = sums * np.uint32(3) + column
    return sums


def run(bench: Bench, point: Point) -> list[Sample]:
    """One block on every SM, or on every pair of SMs two of which one asks."""
    (kernel,) = bench.kernels(point)
    copy, blocks, trips = COPIES[point["shape"]], int(point["blocks"]), bench.trips(TRIPS)
    sms = bench.machine.sm_count // blocks * blocks
    nbytes = PER_TRIP * copy.rows * copy.row_bytes
    image = np.random.default_rng(7).integers(0, 2**32, nbytes // 4, np.uint32)
    given, out = bench.array(image), bench.empty(4 * len(LANES) * sms)
    expects = (Expected(out, lambda: np.tile(checksums(copy, image), sms)),)
    smem_bytes = nbytes + 16 + 1024
    short, long = (
        Launch(kernel, sms, len(LANES), (given, np.int32(n), out), smem_bytes, expects, cluster=blocks)
        for n in (trips, 2 * trips)
    )
    return [bench.cycles(short, long, operations=trips).inverse("bytes_per_clk_sm", nbytes)]


PROBE = Probe(
    asks="How many bytes a clock does tcgen05.cp bring from shared memory to tensor memory, by shape and blocks?",
    archs=with_feature("tcgen05"),
    axes=(Axis("shape", tuple(COPIES), quick=("128x256b", "32x128b")), Axis("blocks", (1, 2))),
    metrics=(
        Metric(
            "bytes_per_clk_sm",
            "B/clk/SM",
            Bound("banks of shared memory", upper=limit(lambda limits: limits.smem_bytes_per_clk)),
        ),
    ),
    builds=builds,
    run=run,
    constants=tuple(
        Constant(f"tmem_copy{label}_bytes_per_clk_sm", "bytes_per_clk_sm", at(shape=shape, blocks=blocks))
        for label, shape, blocks in (("", "128x256b", 1), ("_32x128b", "32x128b", 1), ("_pair", "128x256b", 2))
    ),
)
