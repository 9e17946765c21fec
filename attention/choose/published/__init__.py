"""Kernels that others published, by our model: each one's own tile, and by how much a prediction misses.

figures   what others published of a forward: with a shape, and headlines without one
cycles    a prediction in cycles of 128 rows by 128 keys
band      how much of our highest prediction published kernels reach
speed     our prediction as an interval, beside theirs
miss      why a figure and our highest differ by more than a quarter
torchs    our predicted speed beside what was published of torch's kernels
table     FlashAttention-4's table of tuning constants
pair      a pair of blocks beside a single one
ranking   all of it of a GPU that nobody measured here
"""
