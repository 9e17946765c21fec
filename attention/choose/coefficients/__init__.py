"""Every number of the model that is no constant of a profile, each with its derivation.

table         all of them, and sizes that hardware and kernels fix
coefficient   what one is: a value, its kind, why
code          lines of code that an SM does not hold yet
load          lines that rows touch, what DRAM gives again, what waits in turn
mask          what a score and a tile of keys cost under a mask
part          keys that blocks share: to leave parts, and to bring them together
"""
