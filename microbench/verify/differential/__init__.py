"""A GPU against the emulator: the same random inputs for every wrapper, layout and swizzle.

catalogue            every case, gathered from tensor_cores, formats, matrices, words, small, boxes, warpgroups and
programs
gpu, emulated        the two halves
compare, score       what came of it
trials               small tensor copies, each in a process of its own
"""
