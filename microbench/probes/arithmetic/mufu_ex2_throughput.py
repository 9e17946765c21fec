"""MUFU.EX2 throughput: the ceiling of a softmax that computes its exponentials on the special-function unit."""

import numpy as np

from microbench.shapes.chain import chain_throughput

PROBE = chain_throughput(
    asks="How many exponentials (MUFU.EX2) does one SM give per clock?",
    opcode="MUFU.EX2",
    step=lambda x, a, b: np.exp2(-x),
    rate=lambda limits: limits.mufu_lanes,
    constant="mufu_ex2",
    per_trip=32,
)
