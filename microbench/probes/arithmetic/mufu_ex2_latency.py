"""MUFU.EX2 latency: the serial cost of one exponential in a softmax row."""

import numpy as np

from microbench.shapes.chain import chain_latency

PROBE = chain_latency(
    asks="How many cycles after a MUFU.EX2 can another one use its result?",
    opcode="MUFU.EX2",
    step=lambda x, a, b: np.exp2(-x),
    least_cycles=8,  # a warp occupies the 4 MUFU lanes of its quarter of the SM for 8 cycles
    constant="mufu_ex2",
)
