"""FFMA2 latency: two f32 fused multiply-adds in one instruction, of chips with tensor memory alone."""

from microbench.machine.arch import with_feature
from microbench.shapes.chain import chain_latency

PROBE = chain_latency(
    asks="How many cycles after an FFMA2 can another one use its result?",
    opcode="FFMA2",
    step=lambda x, a, b: x * a + b,
    least_cycles=lambda limits: limits.alu_latency_cycles,
    constant="ffma2",
    archs=with_feature("f32x2", "tcgen05"),  # for sm_120a ptxas writes two instructions
    width=2,
)
