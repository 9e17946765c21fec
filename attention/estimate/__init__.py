"""A static estimate of a kernel of ours: how long a problem takes on a GPU that nobody has here, from its machine code.

phases.py     the stretches of a cubin that a block passes: before its tiles, each tile, after them
blocks.py     which blocks an SM holds, what tiles each has, and when the last one ends
predicted.py  estimate(): seconds, their interval, and what bounds them
held.py       the same for kernels that were timed, held against those timings: data/verification/static_estimate.jsonl
"""
