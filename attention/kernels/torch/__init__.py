"""Torch's kernels, a file each: the limits that torch states, the calls, and the variants that the chooser sees.

Variants are read without torch, so that each call imports it.
"""
