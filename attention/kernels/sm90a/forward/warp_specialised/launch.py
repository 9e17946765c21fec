"""The launcher: torch tensors in, tensor maps and sizes to the kernel, (out, lse) back."""

import ctypes
import math
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import torch

from attention.call import NO_EXTRAS, Extras
from attention.kernels.common.family import Sizes, fill
from attention.kernels.common.layout import empty_lse
from attention.kernels.launch import driver, tensor_map
from attention.kernels.launch.counters import counters
from attention.kernels.launch.driver import Function
from attention.kernels.launch.loaded import function_of
from attention.kernels.launch.tensors import outputs, place, readable
from attention.kernels.sm90a.forward.warp_specialised.arguments import GROUP_ROWS, Launch, Shape, build_of, shape_of
from attention.problem import AttentionProblem
from attention.variant import Config

FOLDER = Path(__file__).parent
# A score may exceed its row's maximum by 8 in log2 before outputs are rescaled: p below 2^8 (FlashAttention-4's rule).
SLACK_LOG2 = 8.0


@dataclass(frozen=True)
class Prepared:
    """All of a launch that does not change with addresses."""

    function: Function
    shape: Shape
    behind_maps: bytes
    blocks: int
    swizzle: int


def forward(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    problem: AttentionProblem,
    config: Config,
    extras: Extras = NO_EXTRAS,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Out (B, Hq, Sq, D) and lse (B, Hq, Sq), float32, of (B, Hq, Sq, D) and twice (B, Hkv, Skv, D), f16 or bf16.

    Packed sequences are one batch of all their rows. Inputs that TMA cannot read in place are copied first: see
    attention.kernels.launch.tensor_map.fits. Raises BuildError or LaunchError where the kernel cannot be built or run.
    """
    index = query.device.index
    if index != torch.cuda.current_device():
        with torch.cuda.device(index):
            return forward(query, key, value, problem, config, extras)
    (out, written), lse = outputs(query), empty_lse(query)
    query, key, value = (readable(tensor) for tensor in (query, key, value))
    prepared = _prepared(index, query.shape, key.shape, written.stride(), problem, config)
    bfloat16, span = query.dtype == torch.bfloat16, prepared.swizzle
    of_queries, of_keys = (GROUP_ROWS, span // 2), (prepared.shape.tile_keys, span // 2)
    maps = (
        tensor_map.encode(tensor.data_ptr(), tensor.shape, tensor.stride(), bfloat16, box, span)
        for tensor, box in ((query, of_queries), (key, of_keys), (value, of_keys))
    )
    launch = Launch.from_buffer_copy(b"".join((*maps, prepared.behind_maps)))
    stream = driver.current_stream(index)
    launch.out, launch.lse = written.data_ptr(), lse.data_ptr()
    launch.counters = counters(index).address(stream, torch.cuda.is_current_stream_capturing())
    if extras is not NO_EXTRAS:
        place(launch, extras)
    pointer = ctypes.c_void_p(ctypes.addressof(launch))
    driver.launch(prepared.function, prepared.blocks, prepared.shape.threads, stream, ctypes.addressof(pointer))
    if written is not out:
        out.copy_(written[..., : out.shape[-1]])
    return out, lse


@lru_cache(maxsize=4096)
def _prepared(
    index: int, query: Sizes, key: Sizes, out_strides: Sizes, problem: AttentionProblem, config: Config
) -> Prepared:
    shape = shape_of(problem, config)
    device = torch.device("cuda", index)
    sm_count = torch.cuda.get_device_properties(device).multi_processor_count
    function = function_of(device, FOLDER, build_of(problem, config))
    template = Launch(
        out_batch=out_strides[0],
        out_head=out_strides[1],
        out_row=out_strides[2],
    )
    tiles = fill(template, problem, query, key, shape.tile_rows)
    template.blocks = min(sm_count, tiles)
    template.slack = SLACK_LOG2 / template.scale_log2 if template.scale_log2 > 0 else math.inf
    behind = bytes(template)[3 * tensor_map.MAP_BYTES :]
    return Prepared(function, shape, behind, template.blocks, 2 * shape.panel_width)
