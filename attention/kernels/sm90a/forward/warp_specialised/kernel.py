"""The launcher: torch tensors in, tensor maps and sizes to the kernel, (out, lse) back."""

import ctypes
import math
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import torch

from attention.cuda import driver, tensor_map
from attention.cuda.counters import counters
from attention.cuda.driver import Function
from attention.cuda.kernels import function_of
from attention.kernels.sm90a.forward.warp_specialised.launch import (
    GROUP_ROWS,
    Launch,
    Shape,
    defines_of,
    section_of,
    shape_of,
)
from attention.layout import empty_lse, empty_out
from attention.problem import AttentionProblem
from attention.variant import Config
from microbench.build import Defines

KERNEL = "attention_forward_sm90a"
FOLDER = Path(__file__).parent
LOG2_E = math.log2(math.e)
# A score may exceed its row's maximum by 8 in log2 before outputs are rescaled: p below 2^8 (FlashAttention-4's rule).
SLACK_LOG2 = 8.0

Sizes = tuple[int, ...]


@dataclass(frozen=True)
class Prepared:
    """All of a launch that does not change with addresses."""

    function: Function
    shape: Shape
    template: bytes
    blocks: int
    swizzle: int


def forward(
    query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, problem: AttentionProblem, config: Config
) -> tuple[torch.Tensor, torch.Tensor]:
    """Out (B, Hq, Sq, D) and lse (B, Hq, Sq), float32, of (B, Hq, Sq, D) and twice (B, Hkv, Skv, D), f16 or bf16.

    Inputs that TMA cannot read in place are copied first: see attention.cuda.tensor_map.fits.
    Raises BuildError or LaunchError where the kernel cannot be built or run.
    """
    index = query.device.index
    if index != torch.cuda.current_device():
        with torch.cuda.device(index):
            return forward(query, key, value, problem, config)
    width = query.shape[-1]
    query, key, value = (_readable(tensor) for tensor in (query, key, value))
    out, lse = empty_out(query, query.shape[-1]), empty_lse(query)
    prepared = _prepared(index, query.shape, key.shape, out.stride(), problem, config)
    bfloat16, span = query.dtype == torch.bfloat16, prepared.swizzle
    launch = Launch.from_buffer_copy(prepared.template)
    base = ctypes.addressof(launch)
    rows = (GROUP_ROWS, prepared.shape.tile_keys, prepared.shape.tile_keys)
    for at, (tensor, box) in enumerate(zip((query, key, value), rows, strict=True)):
        encoded = tensor_map.encode(tensor.data_ptr(), tensor.shape, tensor.stride(), bfloat16, (box, span // 2), span)
        ctypes.memmove(base + at * tensor_map.MAP_BYTES, encoded, tensor_map.MAP_BYTES)
    stream = torch.cuda.current_stream().cuda_stream
    launch.out, launch.lse = out.data_ptr(), lse.data_ptr()
    launch.counters = counters(index).address(stream, torch.cuda.is_current_stream_capturing())
    pointer = ctypes.c_void_p(base)
    driver.launch(prepared.function, prepared.blocks, prepared.shape.threads, stream, ctypes.addressof(pointer))
    return (out if out.shape[-1] == width else out[..., :width]), lse


def _readable(tensor: torch.Tensor) -> torch.Tensor:
    """The tensor, or a copy that TMA can read."""
    if tensor.shape[-1] % 8:
        return torch.nn.functional.pad(tensor, (0, -tensor.shape[-1] % 8))
    return tensor if tensor_map.fits(tensor) else tensor.clone(memory_format=torch.contiguous_format)


@lru_cache(maxsize=4096)
def _prepared(
    index: int, query: Sizes, key: Sizes, out_strides: Sizes, problem: AttentionProblem, config: Config
) -> Prepared:
    shape = shape_of(problem, config)
    device = torch.device("cuda", index)
    sm_count = torch.cuda.get_device_properties(device).multi_processor_count
    defines: Defines = defines_of(problem, config)
    function = function_of(device, FOLDER, KERNEL, defines, shape.smem_bytes)
    batch, heads, queries, head_dim = query
    keys, heads_kv = key[2], key[1]
    row_tiles = -(-queries // shape.tile_rows)
    left, right = problem.band
    scale_log2 = problem.softmax_scale * LOG2_E
    template = Launch(
        out_batch=out_strides[0],
        out_head=out_strides[1],
        out_row=out_strides[2],
        batch=batch,
        heads=heads,
        heads_per_kv=heads // heads_kv,
        queries=queries,
        keys=keys,
        head_dim=head_dim,
        left=left,
        right=right,
        row_tiles=row_tiles,
        tiles=row_tiles * batch * heads,
        section=section_of(problem, shape),
        scale_log2=scale_log2,
        scale=problem.softmax_scale,
        slack=SLACK_LOG2 / scale_log2 if scale_log2 > 0 else math.inf,
    )
    return Prepared(function, shape, bytes(template), min(sm_count, row_tiles * batch * heads), 2 * shape.panel_width)
