"""MUFU.EX2 latency: the serial cost of one exponential in a softmax row."""

import numpy as np

from microbench.shapes.chain import chain_latency

PROBE = chain_latency(
    asks="How many cycles after a MUFU.EX2 can another one use its result?",
    opcode="MUFU.EX2",
    step=lambda x, a, b: np.exp2(-x),
    # A warp occupies the MUFU lanes of its quarter of the SM: 4 of them for 8 cycles, on sm_103 8 for 4.
    least_cycles=lambda limits: 32 / (limits.mufu_lanes / 4),
    constant="mufu_ex2",
)
