"""A GPU against the emulator: the same random inputs for every wrapper, layout and swizzle.

catalogue            every case, gathered from tensor_cores, formats, matrices, words, small, boxes, warpgroups and
programs
gpu, emulated        the two halves
compare, rows        what came of it, as data/verification keeps it
trials               small tensor copies, each in a process of its own
__main__             `python -m microbench.verify.differential`
"""
