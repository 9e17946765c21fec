"""The trace of shared memory: a row for each access of a warp, with the wavefronts that its bank conflicts make of it.

    with traced() as trace:
        kernel(grid, block, arguments, shared_mem=size)
    loads = trace.accesses(load=True)
    loads["wavefronts"] - loads["phases"]       # conflicts, access by access

How lanes become an access, and what a phase is: runtime/shared_trace.hpp. Seen are ld, st, ldmatrix and stmatrix; not
cp.async, bulk copies and what the tensor cores read by descriptors.
"""

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from microbench.emulator import toolchain

LOAD, STORE = range(2)
# `emulator::SharedAccess`: bytes a lane, lanes that take part, and the offset of the lowest byte in the block's memory.
ROW = np.dtype([(name, np.uint32) for name in ("kind", "bytes", "lanes", "lowest", "phases", "wavefronts")])


@dataclass
class SharedTrace:
    """What was traced. Empty until the block of `traced` ends."""

    rows: NDArray[np.void]

    def accesses(self, *, load: bool, begin: int = 0, end: int = 1 << 32) -> NDArray[Any]:
        """Rows of loads, or of stores, whose lowest byte lies from `begin` to `end` in the block's shared memory."""
        rows: NDArray[Any] = self.rows
        here = (rows["lowest"] >= begin) & (rows["lowest"] < end)
        found: NDArray[Any] = rows[here & (rows["kind"] == (LOAD if load else STORE))]
        return found

    def conflicts(self, *, load: bool, begin: int = 0, end: int = 1 << 32) -> int:
        """Wavefronts of such accesses beyond one a phase."""
        rows = self.accesses(load=load, begin=begin, end=end)
        return int(rows["wavefronts"].sum()) - int(rows["phases"].sum())


@contextmanager
def traced() -> Iterator[SharedTrace]:
    """Inside, the emulator's launches of this process are traced. Raises EnvironmentLacks without a C++ compiler."""
    library = ctypes.PyDLL(str(toolchain.runtime()))
    library.smscope_traced.restype = ctypes.c_uint64
    trace = SharedTrace(np.empty(0, ROW))
    library.smscope_trace(1)
    try:
        yield trace
    finally:
        first = ctypes.c_void_p()
        count = library.smscope_traced(ctypes.byref(first))
        trace.rows = np.frombuffer(ctypes.string_at(first.value or 0, count * ROW.itemsize) if count else b"", ROW)
        library.smscope_trace(0)
