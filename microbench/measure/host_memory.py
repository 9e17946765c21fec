"""Fresh memory for a host probe: aligned, on huge pages where the system grants them, and honest where it does not."""

import mmap
from contextlib import suppress
from typing import Any

import numpy as np
from numpy.typing import NDArray

HUGE_PAGE = 2**21


class Memory:
    """An anonymous mapping of its own, so that every point of a campaign meets fresh pages.

    Whole huge pages even where fewer bytes are asked for: with 4 KiB pages a first-level TLB reaches 256 to 400 KiB,
    and its misses would look like a slower L2.
    """

    def __init__(self, nbytes: int) -> None:
        self.nbytes = nbytes
        room = (-(-nbytes // HUGE_PAGE) + 1) * HUGE_PAGE
        # Python's default is a shared mapping, which Linux does not put on transparent huge pages.
        private = {"flags": mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS} if hasattr(mmap, "MAP_PRIVATE") else {}
        self._map = mmap.mmap(-1, room, **private)
        base = np.frombuffer(self._map, np.uint8).__array_interface__["data"][0]
        self._start = -base % HUGE_PAGE
        if hasattr(mmap, "MADV_HUGEPAGE"):
            with suppress(OSError):  # a kernel without transparent huge pages
                self._map.madvise(mmap.MADV_HUGEPAGE)
        self.address = base + self._start

    def array(self, dtype: Any, first_byte: int = 0, nbytes: int | None = None) -> NDArray[Any]:
        """A view of this memory, 64-byte aligned where `first_byte` is."""
        count = (self.nbytes - first_byte if nbytes is None else nbytes) // int(np.dtype(dtype).itemsize)
        view: NDArray[Any] = np.frombuffer(self._map, dtype, count, self._start + first_byte)
        return view

    def touch(self, value: int) -> None:
        self.array(np.int64).fill(value)

    def page_flag(self) -> tuple[str, ...]:
        """('small-pages',) where the memory, touched by now, lies on no huge page."""
        return () if _huge_bytes(self.address) > 0 else ("small-pages",)


def _huge_bytes(address: int) -> int:
    """Bytes of the mapping at `address` that lie on transparent huge pages; 0 where the system does not say."""
    inside = False
    try:
        with open("/proc/self/smaps") as lines:
            for line in lines:
                head, _, rest = line.partition(" ")
                if "-" in head and not head.endswith(":"):
                    first, last = (int(part, 16) for part in head.split("-"))
                    inside = first <= address < last
                elif inside and head == "AnonHugePages:":
                    return int(rest.split()[0]) * 1024
    except OSError:
        pass
    return 0
