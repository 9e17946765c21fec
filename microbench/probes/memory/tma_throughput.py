"""TMA from the L2 to shared memory: rows of a box a clock, by how wide a row is and how the rows lie in the L2's lines.

One thread of each SM keeps a ring of mbarrier stages filled; nobody reads what arrives. A stage is 128 rows of 128
bytes in boxes of 64 rows, one, two or four of them side by side, so that every width moves the same bytes of the same
rows. A box's swizzle is as wide as its rows. What has not come is asked for again: hardware keeps nobody for as long as
a stage takes (of runs that tried once or four times a trip 168 of 216 gave up, H200).

place       'whole': rows begin at multiples of 128 bytes, those of a box at multiples of its width. 'across': a row
            begins 144 bytes behind the one before it, as at head dim 72, so that boxes begin at every multiple of 16
            bytes and reach from one sector or line into the next.
order       'shared': blocks walk through the same chunks one behind another, and the L2 Request Coalescer merges what
            they ask for (l2_bandwidth.py), so that the copy engine is what is left. 'scattered': they read different
            chunks at any time, and the L2's own slices are in it.

All of it comes from the L2: 4 MiB, or 4.5 where rows lie across, are a sixth of the half of it that an H100's SM sees,
and every repeat reads each line 130 times. The tensor map asks that a miss bring in 256 bytes, as attention's do.
"""

from dataclasses import replace
from functools import partial
from typing import cast

import numpy as np
from numpy.typing import NDArray

from microbench.emulator.tensor_map import Swizzle
from microbench.machine.arch import KIB, Machine, with_feature
from microbench.measure.launch import Bench, Expected, Launch
from microbench.point import Point
from microbench.probe import Axis, Bound, Build, Constant, Metric, OpCount, Overhead, Probe, Sample
from microbench.results.curves import peak
from microbench.shapes.chain import COUNT, loop

ARRIVE, LOAD, TRY = "SYNCS.ARRIVE.TRANS64", "UTMALDG.2D", "SYNCS.PHASECHK.TRANS64.TRYWAIT"
WIDTHS = (32, 64, 128)
ROW_BYTES = 128  # that are read of each row
PITCH_BYTES = {"whole": 128, "across": 144}
STEPS = {"shared": 1, "scattered": 37}
BOX_ROWS, BOXES_HIGH = 64, 2
STAGE_ROWS = BOX_ROWS * BOXES_HIGH
STAGE_BYTES = STAGE_ROWS * ROW_BYTES
FOOTPRINT_BYTES = 4 * KIB * KIB
THREADS = 128
TRIPS = 512  # 8 MiB an SM: 0.14 ms at 30 bytes a clock
# Counter, parity, stage and chunk; and of each box the four words of its descriptor: where to, mbarrier, coordinates.
AROUND = (
    *COUNT,
    *("UMOV", "MOV", "IMAD", "IMAD.MOV", "IMAD.U32", "IMAD.SHL", "UIMAD", "LOP3", "ULOP3", "SHF", "USHF"),
    *("R2UR", "S2UR", "ULDC", "LDCU", "YIELD", "NOP", "HFMA2"),
)


def boxes(width: int) -> int:
    """Copies that fill one stage."""
    return BOXES_HIGH * ROW_BYTES // width


def builds(point: Point) -> tuple[Build, ...]:
    """A trip: a stage's arrival, then its copies, then the wait for the next stage."""
    width, stages = int(point["width"]), int(point["bytes_in_flight"]) // STAGE_BYTES
    copies = boxes(width)
    asks = Overhead((TRY,), 1, 2), Overhead(("BRA",), 1, 3)
    contract = loop(OpCount(ARRIVE, 1), OpCount(LOAD, copies), overhead=(*asks, Overhead(AROUND, 8, 24 + 5 * copies)))
    contract = replace(contract, asked_again=TRY, before=((ARRIVE, LOAD),))
    defines = (("WIDTH", width), ("BOX_ROWS", BOX_ROWS), ("HIGH", BOXES_HIGH), ("STAGES", stages), ("THREADS", THREADS))
    return (Build(defines, contract),)


def landed(rows: NDArray[np.uint32], width: int) -> NDArray[np.uint32]:
    """(chunks, words): each chunk of rows as its stage holds it, box after box, 16-byte pieces swizzled."""
    panels, words = ROW_BYTES // width, width // 4
    apart = rows.reshape(-1, BOXES_HIGH, BOX_ROWS, panels, words).swapaxes(2, 3)
    pieces = apart.reshape(len(rows) // STAGE_ROWS, BOXES_HIGH * panels, -1, 4)
    at = 16 * np.arange(pieces.shape[2])
    swizzled = np.empty_like(pieces)
    swizzled[:, :, (at ^ (at >> 3 & (width - 1) & 0x70)) // 16] = pieces
    return swizzled.reshape(-1, STAGE_BYTES // 4)


def checksums(stages: NDArray[np.uint32], blocks: int, count: int, flight: int, step: int) -> NDArray[np.uint32]:
    """What each thread makes of its words of the ring, after `count` loads of a block."""
    last = [max(range(stage, count, flight)) for stage in range(flight)]
    chunk = (np.arange(blocks)[:, None] + step * np.array(last)) % len(stages)
    held = stages[chunk].reshape(blocks, -1, THREADS)
    sums = np.zeros((blocks, THREADS), np.uint32)
    for words in held.swapaxes(0, 1):
        sums = sums * np.uint32(3) + words
    return sums


def run(bench: Bench, point: Point) -> list[Sample]:
    """One block on every SM."""
    (kernel,) = bench.kernels(point)
    sms, trips, width = bench.machine.sm_count, bench.trips(TRIPS), int(point["width"])
    flight, step = int(point["bytes_in_flight"]) // STAGE_BYTES, STEPS[point["order"]]
    chunks = bench.footprint(FOOTPRINT_BYTES) // STAGE_BYTES
    shape = (chunks * STAGE_ROWS, PITCH_BYTES[point["place"]] // 2)
    memory = bench.inputs("bits", shape[0] * shape[1], np.uint16).reshape(shape)
    tensor_map = bench.tensor_map(memory, (BOX_ROWS, width // 2), cast(Swizzle, width))
    stages = landed(np.ascontiguousarray(bench.host(memory)[:, : ROW_BYTES // 2]).view(np.uint32), width)
    out = bench.empty(4 * sms * THREADS)

    def launch(count: int) -> Launch:
        args = (tensor_map, np.int32(chunks - 1), np.int32(step), np.int32(count), out)
        expects = (Expected(out, partial(checksums, stages, sms, flight + count, flight, step)),)
        smem_bytes = flight * (STAGE_BYTES + 8) + 1024
        return Launch(kernel, sms, THREADS, args, smem_bytes, expects)

    rows = trips * BOX_ROWS * boxes(width)
    return [bench.cycles(launch(trips), launch(2 * trips), operations=1).inverse("rows_per_clk_sm", rows)]


def most_rows(machine: Machine, point: Point) -> float | None:
    limits = machine.arch.limits
    return limits.l2_bytes_per_clk / float(point["width"]) if limits else None


PROBE = Probe(
    asks="How many rows of a box a clock does TMA bring from the L2, by their width and by where they begin?",
    # On sm120a ptxas sets a branch and a call before each copy whose address may be another block's.
    archs=with_feature("tma", "wgmma") + with_feature("tma", "tcgen05"),
    axes=(
        Axis("width", WIDTHS),
        Axis("place", tuple(PITCH_BYTES)),
        Axis("order", tuple(STEPS), quick=("shared",)),
        Axis("bytes_in_flight", (32 * KIB, 64 * KIB, 128 * KIB), quick=(64 * KIB, 128 * KIB)),
    ),
    metrics=(
        Metric(
            "rows_per_clk_sm",
            "rows/clk/SM",
            Bound("the width of an SM's port to the L2: an H100 took more than a narrow row a clock", upper=most_rows),
        ),
    ),
    builds=builds,
    run=run,
    constants=tuple(
        Constant(
            f"tma_{width}_byte_rows{label}_per_clk_sm",
            "rows_per_clk_sm",
            peak("bytes_in_flight", width=width, place=place, order="shared"),
        )
        for place, label in (("whole", ""), ("across", "_across"))
        for width in WIDTHS
    ),
)
