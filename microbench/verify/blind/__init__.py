"""Bugs planted by someone who had read the PTX ISA, and not the emulator: which of them does it find?

blind.cu, blind_meaner.cu    the kernels; `planted` chooses the bug, 0 is the right kernel
cases                        how they are launched, and what NumPy says of the same inputs
found                        what each mode of the emulator says of each bug: data/verification/blind_bugs.csv
"""
