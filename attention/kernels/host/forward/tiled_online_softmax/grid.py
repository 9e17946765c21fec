"""What one launch works on, in addresses and strides. No Numba here: a launch only needs the compiled code."""

from typing import Any, NamedTuple

import numpy as np

CACHE_LINE = 64
UNBOUNDED = 1 << 40  # an edge of the band that hides nothing


class Operand(NamedTuple):
    """Where a tensor (B, H, S, D) lies: its address, and the strides of B, H and S; D is contiguous."""

    address: int
    batch: int
    head: int
    row: int


class Grid(NamedTuple):
    """One launch. lse is contiguous (B, Hq, Sq)."""

    query: Operand
    key: Operand
    value: Operand
    out: Operand
    lse: int
    heads: int
    group: int  # query heads per key head
    seq_q: int
    seq_kv: int
    dim: int
    dim_v: int
    left: int  # query i sees keys i + left to i + right
    right: int
    block_q: int
    block_kv: int
    tiles: int  # per head
    items: int  # tiles * B * Hq
    lanes: int
    element_bytes: int


def scratch(grid: Grid, dtype: Any) -> Any:
    """A thread's scratch memory, on a cache line: a vector that crosses one costs two loads."""
    panels = grid.block_q // grid.lanes
    elements = grid.lanes * (panels * (grid.dim + grid.dim_v + 2) + 2 + grid.block_kv)
    memory = np.empty(elements + CACHE_LINE // grid.element_bytes, dtype)
    start = (-memory.ctypes.data % CACHE_LINE) // grid.element_bytes
    return memory[start : start + elements]
