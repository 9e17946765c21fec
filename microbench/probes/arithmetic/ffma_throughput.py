"""FFMA throughput: fp32 lanes per SM, reached only with enough warps or independent chains."""

from microbench.shapes.chain import chain_throughput

PROBE = chain_throughput(
    asks="How many FFMA results does one SM give per clock, and how many warps does that take?",
    opcode="FFMA",
    step=lambda x, a, b: x * a + b,
    rate=lambda limits: limits.fp32_lanes,
    constant="ffma",
    # FFMA takes every issue slot: counter, compare and branch of a trip of 64 would cost it 4.5 %.
    per_trip=512,
)
