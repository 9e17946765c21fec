"""FMUL2 latency: two f32 multiplications in one instruction, of chips with tensor memory alone."""

from microbench.machine.arch import with_feature
from microbench.shapes.chain import chain_latency

PROBE = chain_latency(
    asks="How many cycles after an FMUL2 can another one use its result?",
    opcode="FMUL2",
    step=lambda x, a, b: x * a,  # decays to zero; what an operation costs does not depend on it
    least_cycles=lambda limits: limits.alu_latency_cycles,
    constant="fmul2",
    archs=with_feature("f32x2", "tcgen05"),  # for sm_120a ptxas writes two instructions
    width=2,
)
