"""FFMA throughput: fp32 lanes per SM, reached only with enough warps or independent chains.

Two chains a warp end at two thirds, 85.3 of 128 on an H200 however many warps there are. The three operands are three
registers, two of them of one bank, and take two clocks where the reuse cache does not hold one of them. Another warp's
instruction empties it, and with two chains every second instruction is another warp's. With an immediate, or with one
register twice, two chains and even one reach 127 (data/experiments, register_banks).
"""

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
    since="20261123T0",  # before that 64 a trip, of which the loop took 4.5 %
)
