"""The trace of tensor memory: a row for each instruction that allocates it, gives it back or touches it.

    with traced() as trace:
        kernel(grid, block, arguments, shared_mem=size)
    trace.rows["column"]

Rows stand in the order of issue: when an access happens is what waits and fences decide, and the race report watches.
"""

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from microbench.emulator import toolchain

ALLOC, DEALLOC, LOAD, STORE, PRODUCT, OPERAND = range(6)
# `emulator::TensorAccess`: the resident block, its warp, a bit for every 16 lanes, columns, and of a product whether it
# adds to what was there.
ROW = np.dtype([(name, np.uint32) for name in ("kind", "block", "warp", "groups", "column", "columns", "adds")])


@dataclass
class TensorTrace:
    """What was traced. Empty until the block of `traced` ends."""

    rows: NDArray[np.void]


@contextmanager
def traced() -> Iterator[TensorTrace]:
    """Inside, the emulator's launches of this process are traced. Raises EnvironmentLacks without a C++ compiler."""
    library = ctypes.PyDLL(str(toolchain.runtime()))
    library.smscope_traced_tensor.restype = ctypes.c_uint64
    trace = TensorTrace(np.empty(0, ROW))
    library.smscope_trace_tensor(1)
    try:
        yield trace
    finally:
        first = ctypes.c_void_p()
        count = library.smscope_traced_tensor(ctypes.byref(first))
        trace.rows = np.frombuffer(ctypes.string_at(first.value or 0, count * ROW.itemsize) if count else b"", ROW)
        library.smscope_trace_tensor(0)
