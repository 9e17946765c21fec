"""The launcher: torch tensors in, addresses, strides and sizes to the kernel, (out, lse) back. One block a tile."""

import ctypes
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import torch

from attention.call import NO_EXTRAS, Extras
from attention.kernels.common.family import Sizes, fill
from attention.kernels.common.layout import empty_lse
from attention.kernels.launch import driver
from attention.kernels.launch.driver import Function
from attention.kernels.launch.loaded import function_of
from attention.kernels.launch.tensors import outputs, place, readable
from attention.kernels.sm80.forward.software_pipelined.arguments import Launch, build_of, shape_of
from attention.problem import AttentionProblem
from attention.variant import Config

FOLDER = Path(__file__).parent


@dataclass(frozen=True)
class Prepared:
    """All of a launch that does not change with addresses."""

    function: Function
    template: bytes
    blocks: int
    threads: int


def forward(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    problem: AttentionProblem,
    config: Config,
    extras: Extras = NO_EXTRAS,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Out (B, Hq, Sq, D) and lse (B, Hq, Sq), float32, of (B, Hq, Sq, D) and twice (B, Hkv, Skv, D), f16 or bf16.

    Packed sequences are one batch of all their rows. Inputs whose last dimension is not contiguous, or whose base or a
    stride is no multiple of 16 bytes, are copied first. Raises BuildError or LaunchError.
    """
    index = query.device.index
    if index != torch.cuda.current_device():
        with torch.cuda.device(index):
            return forward(query, key, value, problem, config, extras)
    (out, written), lse = outputs(query), empty_lse(query)
    query, key, value = (readable(tensor) for tensor in (query, key, value))
    prepared = _prepared(index, query.shape, key.shape, problem, config)
    launch = Launch.from_buffer_copy(prepared.template)
    launch.q, launch.k, launch.v = query.data_ptr(), key.data_ptr(), value.data_ptr()
    launch.q_batch, launch.q_head, launch.q_row, _ = query.stride()
    launch.k_batch, launch.k_head, launch.k_row, _ = key.stride()
    launch.v_batch, launch.v_head, launch.v_row, _ = value.stride()
    launch.out_batch, launch.out_head, launch.out_row, _ = written.stride()
    launch.out, launch.lse = written.data_ptr(), lse.data_ptr()
    if extras is not NO_EXTRAS:
        place(launch, extras)
    pointer = ctypes.c_void_p(ctypes.addressof(launch))
    stream = driver.current_stream(index)
    driver.launch(prepared.function, prepared.blocks, prepared.threads, stream, ctypes.addressof(pointer))
    if written is not out:
        out.copy_(written[..., : out.shape[-1]])
    return out, lse


@lru_cache(maxsize=4096)
def _prepared(index: int, query: Sizes, key: Sizes, problem: AttentionProblem, config: Config) -> Prepared:
    shape = shape_of(problem, config)
    function = function_of(torch.device("cuda", index), FOLDER, build_of(problem, config))
    template = Launch()
    tiles = fill(template, problem, query, key, shape.tile_rows)
    return Prepared(function, bytes(template), tiles, shape.threads)
