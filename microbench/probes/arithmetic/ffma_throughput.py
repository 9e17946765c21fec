"""FFMA throughput: fp32 lanes per SM, reached only with enough warps or independent chains."""

from microbench.shapes.chain import chain_throughput

PROBE = chain_throughput(
    asks="How many FFMA results does one SM give per clock, and how many warps does that take?",
    opcode="FFMA",
    step=lambda x, a, b: x * a + b,
    rate=lambda limits: limits.fp32_lanes,
    constant="ffma",
    # FFMA takes every issue slot, and counter, compare and branch take theirs from it. On an H200 a trip of 64 gives
    # 122.3 results a clock, of 128 124.3, of 256 126.0, of 512 126.7 and of 768 126.9.
    per_trip=768,
)
