"""Where registers and matrices lie in tensor memory and in shared memory, as the PTX ISA's tables of tcgen05 say."""

from typing import Literal

import numpy as np
from numpy.typing import NDArray

from microbench.verify.differential.layouts import Places, grid

Shape = Literal["32x32b", "16x64b", "16x128b", "16x256b"]
Kind = Literal["f16", "bf16", "e4m3", "e5m2", "tf32", "s8", "u8"]
Words = NDArray[np.uint32]

SHAPES: dict[Shape, int] = {"32x32b": 1, "16x64b": 1, "16x128b": 2, "16x256b": 4}  # the fewest registers


def registers(shape: Shape, count: int) -> Places:
    """(lane, column) of register i of each thread of a warp."""
    t, i = grid(32, count)
    if shape == "32x32b":
        return t, i
    if shape == "16x64b":
        return t // 4 + 8 * (t % 2), t // 2 % 2 + 2 * i
    if shape == "16x128b":
        return t // 4 + 8 * (i % 2), t % 4 + 4 * (i // 2)
    return t // 4 + 8 * (i // 2 % 2), 2 * (t % 4) + i % 2 + 8 * (i // 4)


def columns_of(shape: Shape, count: int) -> int:
    return count if shape == "32x32b" else 2 * count


def lanes_of_rows(m: int) -> NDArray[np.int64]:
    """The lane that holds each row of D."""
    row = np.arange(m)
    return row if m == 128 else row // 16 * 32 + row % 16
