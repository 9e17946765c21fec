"""The launch: addresses and strides to the kernel, and a block for each tile."""

from pathlib import Path

from attention.kernels.launch.launcher import strided
from attention.kernels.sm80.forward.software_pipelined.arguments import build_of, shape_of

forward = strided(Path(__file__).parent, shape_of, build_of)
