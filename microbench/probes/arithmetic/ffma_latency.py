"""FFMA latency. Published: 4 cycles on every architecture since Volta."""

from microbench.shapes.chain import chain_latency

PROBE = chain_latency(
    asks="How many cycles after an FFMA can another one use its result?",
    opcode="FFMA",
    step=lambda x, a, b: x * a + b,
    least_cycles=lambda limits: limits.alu_latency_cycles,
    constant="ffma",
)
