"""Counters that persistent blocks take their tiles from: two ints, 0 before and after every launch.

Launches on one stream follow one another, so they share a pair. A captured launch may be replayed beside any stream's
work, so it gets a pair of its own for good; one graph never runs beside itself.
"""

import threading
from functools import cache

import torch

from attention.errors import LaunchError

PAIR_BYTES = 8
PAIRS = 8192  # 64 KiB a device


class Counters:
    """The pairs of one device."""

    def __init__(self, device: torch.device) -> None:
        self.memory = torch.zeros(2 * PAIRS, dtype=torch.int32, device=device)
        torch.cuda.current_stream(device).synchronize()  # zero before any stream counts
        self.base = self.memory.data_ptr()
        self.taken = 0
        self.of_stream: dict[int, int] = {}
        self.lock = threading.Lock()

    def address(self, stream: int, capturing: bool) -> int:
        """Where a launch on `stream` counts. Raises LaunchError where every pair is taken."""
        if not capturing:
            found = self.of_stream.get(stream)
            if found is not None:
                return found
        with self.lock:
            if not capturing and stream in self.of_stream:
                return self.of_stream[stream]
            if self.taken == PAIRS:
                raise LaunchError(
                    f"{PAIRS} streams and captured launches hold all tile counters of this process; capture fewer."
                )
            address = self.base + PAIR_BYTES * self.taken
            self.taken += 1
            if not capturing:
                self.of_stream[stream] = address
            return address


@cache
def counters(index: int) -> Counters:
    """The counters of the device with this index."""
    return Counters(torch.device("cuda", index))
