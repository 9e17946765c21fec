"""FFMA latency. Published: 4 cycles on every architecture since Volta."""

from microbench.shapes.chain import chain_latency

PROBE = chain_latency(
    asks="How many cycles after an FFMA can another one use its result?",
    opcode="FFMA",
    step=lambda x, a, b: x * a + b,
    least_cycles=2,  # one warp may issue every second cycle at best (16-lane halves before sm_86)
    constant="ffma",
)
