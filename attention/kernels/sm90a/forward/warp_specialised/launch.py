"""The argument of kernel.cu, laid out as config.cuh's `Launch`, and the sizes that follow from a problem."""

import ctypes
from dataclasses import dataclass

GROUP_ROWS = 64
UNBOUNDED = 1 << 29  # a band edge that hides nothing; twice of it still fits an int


class Launch(ctypes.Structure):
    """`Launch` of config.cuh: three tensor maps of 128 bytes, then pointers, strides in elements, and sizes."""

    _fields_ = (
        ("q", ctypes.c_uint8 * 128),
        ("k", ctypes.c_uint8 * 128),
        ("v", ctypes.c_uint8 * 128),
        ("out", ctypes.c_void_p),
        ("lse", ctypes.c_void_p),
        ("out_row", ctypes.c_longlong),
        ("out_head", ctypes.c_longlong),
        ("out_batch", ctypes.c_longlong),
        ("batch", ctypes.c_int),
        ("heads", ctypes.c_int),
        ("heads_per_kv", ctypes.c_int),
        ("queries", ctypes.c_int),
        ("keys", ctypes.c_int),
        ("head_dim", ctypes.c_int),
        ("right", ctypes.c_int),
        ("left", ctypes.c_int),
        ("row_tiles", ctypes.c_int),
        ("tiles", ctypes.c_int),
        ("section", ctypes.c_int),
        ("scale_log2", ctypes.c_float),
        ("scale", ctypes.c_float),
        ("slack", ctypes.c_float),
        ("counters", ctypes.c_void_p),
        ("_padding", ctypes.c_uint8 * 24),  # sizeof is a multiple of the 64 bytes that a tensor map is aligned to
    )


@dataclass(frozen=True)
class Shape:
    """One compiled kernel's tile: head dim as padded, keys of a tile, consumer warpgroups, stages."""

    head_dim: int
    tile_keys: int
    warpgroups: int
    stages: int

    @property
    def tile_rows(self) -> int:
        """Query rows of one tile."""
        return GROUP_ROWS * self.warpgroups

    @property
    def panel_width(self) -> int:
        """Elements of one panel: the swizzle's span, 128 bytes where it divides the row, else 64."""
        return 32 if self.head_dim % 64 else 64

    @property
    def threads(self) -> int:
        """Consumers and the producer warpgroup."""
        return 128 * (self.warpgroups + 1)

    @property
    def smem_bytes(self) -> int:
        """Q, the rings of K and V, their mbarriers, and the tile numbers."""
        tiles = self.tile_rows + 2 * self.stages * self.tile_keys
        return tiles * self.head_dim * 2 + 8 * (2 * self.warpgroups + 4 * self.stages + 5)
