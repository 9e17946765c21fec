"""Counters that are 0 before and after every launch.

Persistent blocks take their tiles from two ints; where keys are split, the parts of each tile arrive at one of its own.

Launches that may run at the same time count in sets of their own; launches that follow one another share a set.

    torch's own streams     live as long as the process: a set for each handle
    any other stream        a set for each id of the driver's, which is unique for the life of the program: a destroyed
                            stream's handle may come back while its last kernel still runs
    the per-thread stream   a set for each thread: its handle, 2, is another stream in every thread
    a captured launch       a set for good: it may be replayed beside any stream's work, though never beside itself

No set is ever given back: a pair is less than a thousandth of the graph node or the stream that it belongs to, and the
4 KiB of split keys are less than what such a launch leaves for its last block.
"""

import threading
from collections.abc import Callable, Hashable
from functools import cache, partial
from typing import Any

import torch

from attention.kernels.launch import driver

PAIR = 2
INT_BYTES = 4
PAIR_BYTES = PAIR * INT_BYTES
CHUNK_BYTES = 64 << 10
PER_THREAD = 2  # CU_STREAM_PER_THREAD

_thread = threading.local()


class Counters:
    """The sets of `count` ints on one device.

    `zeroed` gives so many bytes of zeroed memory for good; `identity` tells streams of one handle apart, and is None
    for a stream that nobody destroys.
    """

    def __init__(
        self, zeroed: Callable[[int], int], identity: Callable[[int], Hashable | None], count: int = PAIR
    ) -> None:
        self.zeroed = zeroed
        self.identity = identity
        self.set_bytes = INT_BYTES * count
        self.chunks: list[int] = []  # their addresses
        self.next = self.end = 0
        self.of_handle: dict[int, int] = {}
        self.of_stream: dict[Hashable, int] = {}
        self.lock = threading.Lock()

    def address(self, stream: int, capturing: bool) -> int:
        """Where a launch on `stream`, the current one, counts. Raises LaunchError where there is no memory."""
        if capturing:
            with self.lock:
                return self._new()
        found = self.of_handle.get(stream)
        if found is not None:
            return found
        identity = self.identity(stream)
        with self.lock:
            sets: dict[Any, int] = self.of_handle if identity is None else self.of_stream
            key = stream if identity is None else identity
            if key not in sets:
                sets[key] = self._new()
            return sets[key]

    def _new(self) -> int:
        if self.next == self.end:
            self.next = self.zeroed(CHUNK_BYTES)
            self.end = self.next + CHUNK_BYTES
            self.chunks.append(self.next)
        address, self.next = self.next, self.next + self.set_bytes
        return address


def counters(index: int, count: int = PAIR) -> Counters:
    """The sets of so many counters of the device with this index, the current one."""
    return _counters(index, count)


@cache  # behind a function: a default that is left out, and one that is given, would be two of one kind
def _counters(index: int, count: int) -> Counters:
    return Counters(driver.zeroed, partial(identity, index), count)


def identity(index: int, stream: int) -> Hashable | None:
    """What tells a stream from others of its handle; None for torch's own, which live as long as the process."""
    if stream == PER_THREAD:
        if not hasattr(_thread, "token"):
            _thread.token = object()  # and no number, which the next thread might have again
        return _thread.token  # type: ignore[no-any-return]
    # c10/cuda/CUDAStream.cpp: 0 is the default stream, odd is one of torch's pools, even a stream from elsewhere.
    number = torch._C._cuda_getCurrentStream(index)[0]
    return None if number == 0 or number % 2 else driver.stream_id(stream)
