"""The launch: tensor maps to the kernel, and blocks that stay, at most one an SM, by themselves or in pairs."""

import math
from pathlib import Path
from typing import Any

import torch

from attention.kernels.launch.launcher import Launcher
from attention.kernels.launch.machine import Machine
from attention.kernels.sm100a.forward.tensor_memory.arguments import ROWS, Launch, Shape, build_of, shape_of

# A score may exceed its row's maximum by 8 in log2 before outputs are rescaled: p below 2^8 (FlashAttention-4's rule).
SLACK_LOG2 = 8.0


def _deal(launch: Any, machine: Machine, shape: Shape) -> int:
    launch.blocks = shape.cta_group * min(machine.sm_count // shape.cta_group, launch.tiles)
    launch.slack = SLACK_LOG2 / launch.scale_log2 if launch.scale_log2 > 0 else math.inf
    return int(launch.blocks)


def _maps(machine: Machine, shape: Shape, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor) -> bytes:
    boxes = (
        (query, ROWS, shape.key_panel),
        (key, shape.held_keys, shape.key_panel),
        (value, shape.tile_keys, shape.value_panel),
    )
    return b"".join(machine.tensor_map(tensor, (rows, width), 2 * width) for tensor, rows, width in boxes)


forward = Launcher(Path(__file__).parent, Launch, shape_of, build_of, _deal, _maps, counts=True)
