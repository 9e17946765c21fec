"""The launch: addresses and strides to the kernel, and a block for each tile, or for each part of its keys."""

from pathlib import Path

from attention.kernels.launch.launcher import split_strided
from attention.kernels.sm75.forward.register_staged.arguments import build_of, shape_of

forward = split_strided(Path(__file__).parent, shape_of, build_of)
