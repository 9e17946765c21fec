"""The launch: addresses and strides to the kernel, and a block for each tile."""

from pathlib import Path
from typing import Any

import torch

from attention.kernels.launch.launcher import Launcher
from attention.kernels.launch.machine import Machine
from attention.kernels.sm70.forward.quad_pair.arguments import Launch, Shape, build_of, shape_of


def _deal(launch: Any, machine: Machine) -> int:
    return int(launch.tiles)


def _point(
    launch: Any, machine: Machine, shape: Shape, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor
) -> None:
    launch.q, launch.k, launch.v = query.data_ptr(), key.data_ptr(), value.data_ptr()
    launch.q_batch, launch.q_head, launch.q_row, _ = query.stride()
    launch.k_batch, launch.k_head, launch.k_row, _ = key.stride()
    launch.v_batch, launch.v_head, launch.v_row, _ = value.stride()


forward = Launcher(Path(__file__).parent, Launch, shape_of, build_of, _deal, _point)
