"""Where registers and matrices lie in tensor memory and in shared memory, as the PTX ISA's tables of tcgen05 say."""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from microbench.verify.differential.layouts import Places, grid

Shape = Literal["32x32b", "16x64b", "16x128b", "16x256b", "16x32bx2"]
Kind = Literal["f16", "bf16", "e4m3", "e5m2", "e2m3", "e3m2", "padded_e2m1", "tf32", "s8", "u8"]
Words = NDArray[np.uint32]

# The fewest registers of each shape.
SHAPES: dict[Shape, int] = {"32x32b": 1, "16x64b": 1, "16x128b": 2, "16x256b": 4, "16x32bx2": 1}


@dataclass(frozen=True)
class Move:
    """A load or a store of tensor memory: `count` registers a thread.

    `apart`: columns from the end of the lower threads' half to the upper threads' one, of 16x32bx2 alone.
    """

    shape: Shape
    count: int
    apart: int = 0

    @property
    def split(self) -> int:
        """Columns from where one half begins to where the other does."""
        return self.count + self.apart

    @property
    def wrapper(self) -> str:
        """The shape as ptx/tcgen05_ld.cuh spells it."""
        return f"{self.shape}<{self.split}>" if self.shape == "16x32bx2" else self.shape

    @property
    def columns(self) -> int:
        """From the first that it touches to the last."""
        return self.count if self.shape == "32x32b" else 2 * self.count + self.apart


def registers(move: Move) -> Places:
    """(lane, column) of register i of each thread of a warp."""
    t, i = grid(32, move.count)
    shape = move.shape
    if shape == "32x32b":
        return t, i
    if shape == "16x32bx2":
        return t % 16, i + move.split * (t // 16)
    if shape == "16x64b":
        return t // 4 + 8 * (t % 2), t // 2 % 2 + 2 * i
    if shape == "16x128b":
        return t // 4 + 8 * (i % 2), t % 4 + 4 * (i // 2)
    return t // 4 + 8 * (i // 2 % 2), 2 * (t % 4) + i % 2 + 8 * (i // 4)


def lanes_of_rows(m: int) -> NDArray[np.int64]:
    """The lane that holds each row of D."""
    row = np.arange(m)
    return row if m == 128 else row // 16 * 32 + row % 16
