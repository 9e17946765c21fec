"""f32 multiply-add throughput, as Numba's loops reach it: independent Horner chains, one per SIMD lane.

A chain's result is due four clocks later, and two pipes take one a clock: eight chains must be in flight. They all wait
in the core's schedulers, so a chain must be short. Measured on Zen 5, of 32 lanes a clock: 32.0 with chains of 4, 31.7
with 8, 26.5 with 16, 18 with 32. Eight leaves the load and store ports most of their time. LLVM chooses the registers
(it prefers 256-bit ones on several CPUs that have 512), and the row's flag says which.
"""

from typing import Any

import numpy as np

from microbench.compile.host_code import provable
from microbench.measure.host import HostBench
from microbench.measure.host_asm import LoopContract
from microbench.shapes.lap import Lap, fma_per_clk, throughput, uniform

ELEMENTS = 1024
CHAIN = 8


@provable()
def horner(x: Any, out: Any, add: Any, laps: int) -> None:
    for _ in range(laps):
        for i in range(x.size):
            factor, value = x[i], out[i]
            for _ in range(CHAIN):
                value = value * factor + add
            out[i] = value


def arrays(bench: HostBench) -> tuple[Any, ...]:
    """Factors below one, so that the values stay finite however long the loop runs."""
    return uniform(bench, ELEMENTS, 0.5, 0.9), uniform(bench, ELEMENTS, 0.0, 1.0), np.float32(0.25)


PROBE = throughput(
    asks="How many f32 multiply-adds does this CPU do per second, on one core and on all?",
    lap=lambda _: Lap(horner, arrays, ELEMENTS * CHAIN, LoopContract(fma=CHAIN, memory=3)),
    metric="fma",
    unit="FMA",
    per_clk=fma_per_clk(),
    why="lanes of a core's multiply-add pipes",
    constants={"fma_f32": {}},
)
