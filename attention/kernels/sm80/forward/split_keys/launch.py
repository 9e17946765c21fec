"""The launch: addresses and strides to the kernel, and a block for each part of a tile's keys."""

from pathlib import Path

from attention.kernels.launch.launcher import few_strided
from attention.kernels.sm80.forward.split_keys.arguments import build_of, shape_of

forward = few_strided(Path(__file__).parent, shape_of, build_of)
