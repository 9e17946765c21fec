"""f32 dot products out of the first cache, at the row lengths of attention heads and at one where only the core counts.

Each product ends in one sum across the lanes of a register, which short rows pay for as often as long ones.
"""

from typing import Any

import numpy as np

from microbench.compile.host_code import REORDERED, provable
from microbench.machine.arch import Machine
from microbench.measure.host import HostBench
from microbench.measure.host_asm import LoopContract
from microbench.point import Point
from microbench.probe import Axis
from microbench.shapes.lap import Lap, throughput, uniform

ELEMENTS = 2048
LONGEST = 2048


@provable(REORDERED)
def dots(rows: Any, query: Any, out: Any, laps: int) -> None:
    """out[r] = rows[r] . query for every row of (R, D)."""
    for _ in range(laps):
        for r in range(rows.shape[0]):
            total = np.float32(0)
            for i in range(query.size):
                total += rows[r, i] * query[i]
            out[r] = total


def lap(point: Point) -> Lap:
    """8 KiB of rows whatever their length."""
    length = point["length"]

    def arrays(bench: HostBench) -> tuple[Any, ...]:
        rows = uniform(bench, ELEMENTS, -1.0, 1.0).reshape(-1, length)
        return rows, uniform(bench, length, -1.0, 1.0), uniform(bench, len(rows), 0.0, 1.0)

    return Lap(dots, arrays, ELEMENTS, LoopContract(fma=1, memory=2))


def per_clk(machine: Machine, _: Point) -> float:
    """Two loads of a full register each: two registers a clock feed one multiply-add a lane."""
    return LOADED_F32_PER_CLK / 2 if "avx512f" in machine.arch.features else LOADED_F32_PER_CLK


# Two loads of 64 bytes a clock (Zen 5, Intel with AVX-512); cores with narrower registers may load up to four.
LOADED_F32_PER_CLK = 32

PROBE = throughput(
    asks="How many multiply-adds per second does this CPU do in dot products of rows in its first cache?",
    lap=lap,
    metric="dot",
    unit="FMA",
    per_clk=per_clk,
    why="what a core's load ports can feed",
    constants={"dot_f32": {"length": LONGEST}, "dot_f32_d128": {"length": 128}},
    axes=(Axis("length", (64, 128, 256, LONGEST)),),
)
