"""FFMA2 throughput: as many f32 lanes as for one at a time, by half the instructions."""

from microbench.machine.arch import with_feature
from microbench.shapes.chain import chain_throughput

PROBE = chain_throughput(
    asks="How many f32 results of FFMA2 does one SM give per clock, and how many warps does that take?",
    opcode="FFMA2",
    step=lambda x, a, b: x * a + b,
    rate=lambda limits: limits.fp32_lanes,
    constant="ffma2",
    per_trip=512,
    archs=with_feature("f32x2", "tcgen05"),  # for sm_120a ptxas writes two instructions
    width=2,
    warps=(16, 32),
)
