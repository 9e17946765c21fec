"""Whole calls on a CPU: attention.sdpa beside torch's own function, overheads and choice included.

grid       what `attention bench` times first, kernel by kernel: the choices rest on it
shapes     100 calls that a seed draws: decode, tiny, half precision, causal prefill, cross attention
run        times them, alternating, and appends to data/attention/<machine>-calls.jsonl
results    reads the rows back: how fast sdpa is beside torch, and whether that holds what is promised
show       prints that
"""
