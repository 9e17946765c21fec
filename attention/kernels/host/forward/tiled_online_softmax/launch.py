"""The launcher: torch tensors in, addresses and strides to the threads, (out, lse) back."""

import os
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import torch

from attention.call import NO_EXTRAS, Extras
from attention.kernels.common.layout import empty_lse, empty_out
from attention.kernels.host.forward.tiled_online_softmax import machine_code
from attention.kernels.host.forward.tiled_online_softmax.grid import UNBOUNDED, Grid, Operand, scratch
from attention.kernels.host.forward.tiled_online_softmax.registers import panel_lanes
from attention.problem import AttentionProblem
from attention.variant import Config

_pool: ThreadPoolExecutor | None = None


def forward(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    problem: AttentionProblem,
    config: Config,
    extras: Extras = NO_EXTRAS,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Out (B, Hq, Sq, Dv) and lse (B, Hq, Sq) of (B, Hq, Sq, D), (B, Hkv, Skv, D) and (B, Hkv, Skv, Dv).

    Strides and dtypes of both are those of common.layout. Uses as many threads as torch (`torch.set_num_threads`).
    """
    working = torch.float64 if query.dtype == torch.float64 else torch.float32
    q, k, v = (_readable(tensor, working) for tensor in (query, key, value))
    batch, heads, seq_q, _ = q.shape
    out, lse = empty_out(query, v.shape[-1], working), empty_lse(query)
    tiles = -(-seq_q // config["block_q"])
    band = problem.band()
    grid = Grid(
        query=_operand(q),
        key=_operand(k),
        value=_operand(v),
        out=_operand(out),
        lse=lse.data_ptr(),
        heads=heads,
        group=heads // k.shape[1],
        seq_q=seq_q,
        seq_kv=k.shape[2],
        dim=q.shape[-1],
        dim_v=v.shape[-1],
        left=-UNBOUNDED if band.left is None else band.left,
        right=UNBOUNDED if band.right is None else band.right,
        block_q=config["block_q"],
        block_kv=config["block_kv"],
        tiles=tiles,
        items=tiles * batch * heads,
        lanes=panel_lanes(q.element_size()),
        element_bytes=q.element_size(),
    )
    _run(grid, np.dtype(np.float64 if working == torch.float64 else np.float32), problem.softmax_scale)
    return (out if query.dtype == working else out.to(query.dtype)), lse


def _run(grid: Grid, dtype: Any, scale: float) -> None:
    threads = max(1, min(torch.get_num_threads(), grid.items))
    draw = machine_code.entry(8 * grid.element_bytes)
    fields = np.array([number for each in grid for number in (each if isinstance(each, tuple) else (each,))], np.int64)
    counter = np.zeros(1, np.int64)
    launch = (fields.ctypes.data, counter.ctypes.data)
    memories = [scratch(grid, dtype) for _ in range(threads)]
    others = [_workers().submit(draw, *launch, memory.ctypes.data, scale) for memory in memories[1:]]
    draw(*launch, memories[0].ctypes.data, scale)
    for other in others:
        other.result()


def _readable(tensor: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    tensor = tensor.detach().to(dtype)
    return tensor if tensor.stride(-1) == 1 or tensor.shape[-1] == 1 else tensor.contiguous()


def is_ready() -> bool:
    """Whether a call need not wait for a compiler."""
    return machine_code.is_kept()


def prepare() -> None:
    """Compile for later calls and processes."""
    machine_code.keep()


def _operand(tensor: torch.Tensor) -> Operand:
    return Operand(tensor.data_ptr(), tensor.stride(0), tensor.stride(1), tensor.stride(2))


def _workers() -> ThreadPoolExecutor:
    global _pool
    if _pool is None:
        _pool = ThreadPoolExecutor(max_workers=os.cpu_count(), thread_name_prefix="smscope-attention")
    return _pool


def _forget_workers() -> None:
    global _pool
    _pool = None


# A forked child (a data loader's worker) inherits the pool without its threads.
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_workers)
