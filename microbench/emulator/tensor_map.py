"""A tensor map for TMA: described once, encoded for the emulator here (a GPU's is made by its driver)."""

import math
import struct
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from microbench.errors import InputError

Element = Literal["u8", "u16", "u32", "f16", "bf16", "f32"]
Swizzle = Literal[0, 32, 64, 128]

_ELEMENTS: dict[Element, int] = {"u8": 1, "u16": 2, "u32": 4, "f16": 2, "bf16": 2, "f32": 4}
_MAGIC = int.from_bytes(b"tnsormap", "little")
_BYTES = 128


@dataclass(frozen=True)
class TensorMap:
    """A box of a row-major tensor, as cuTensorMapEncodeTiled takes it; dimensions here are outermost first.

    Raises InputError where a rule of the CUDA driver API is broken ('Tensor Map Object Management').

    Args:
        array: one to five dimensions in device memory, contiguous along the last one.
        box: elements that one copy moves, by dimension.
        element: what an element is; NumPy has no bf16.
        swizzle: span in bytes of the pattern that 16-byte chunks are permuted in; 0 is none.
        nan_outside: elements outside of the tensor read as NaN, not as zero.
    """

    array: NDArray[Any]
    box: tuple[int, ...]
    element: Element
    swizzle: Swizzle = 0
    nan_outside: bool = False

    def __post_init__(self) -> None:
        size, rank = _ELEMENTS[self.element], self.array.ndim
        row = self.box[-1] * size if self.box else 0
        rules = (
            (1 <= rank <= 5 and len(self.box) == rank, "a tensor map has one to five dimensions, and a box of as many"),
            (self.array.itemsize == size, f"an element of {self.element} has {size} bytes"),
            (all(1 <= side <= 256 for side in self.box), "a side of the box has 1 to 256 elements"),
            (row % 16 == 0, "the innermost side of the box is a multiple of 16 bytes"),
            (not self.swizzle or row <= self.swizzle, "the innermost side of the box fits into the swizzle's span"),
            (self.array.ctypes.data % 16 == 0, "the tensor starts at a multiple of 16 bytes"),
            (self.array.strides[-1:] == (size,), "the last dimension is contiguous"),
            (all(s % 16 == 0 and s >= 0 for s in self.array.strides[:-1]), "strides are multiples of 16 bytes"),
            (not self.swizzle or row == self.swizzle, "a swizzled box fills its span; a smaller one is not modelled"),
        )
        for holds, rule in rules:
            if not holds:
                raise InputError(f"No tensor map for an array of {self.array.shape} and a box of {self.box}: {rule}.")

    @property
    def box_bytes(self) -> int:
        """What one copy adds to an mbarrier's count of bytes."""
        return math.prod(self.box) * _ELEMENTS[self.element]

    def emulated(self) -> np.void:
        """The 128 bytes that the emulator reads, as an argument of a launch (`emulator::TensorMap`)."""
        rank = self.array.ndim
        packed = struct.pack(
            "<QQ5Q4Q5H5B",
            _MAGIC,
            self.array.ctypes.data,
            *_padded(reversed(self.array.shape), 5),
            *_padded(reversed(self.array.strides[:-1]), 4),
            *_padded(reversed(self.box), 5),
            rank,
            _ELEMENTS[self.element],
            list(_ELEMENTS).index(self.element),
            self.swizzle,
            int(self.nan_outside),
        )
        opaque: np.void = np.frombuffer(packed.ljust(_BYTES, b"\0"), np.dtype((np.void, _BYTES)))[0]
        return opaque


def _padded(values: Any, count: int) -> tuple[int, ...]:
    given = tuple(values)
    return given + (1,) * (count - len(given))
