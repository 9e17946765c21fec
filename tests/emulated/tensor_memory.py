"""Where registers and matrices lie in tensor memory and in shared memory, as the PTX ISA's tables of tcgen05 say."""

from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from microbench.verify.differential.layouts import Places, grid, swizzled
from microbench.verify.differential.number_formats import dtypes

Shape = Literal["32x32b", "16x64b", "16x128b", "16x256b"]
Kind = Literal["f16", "bf16", "e4m3", "e5m2"]
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


def element_bits(values: NDArray[np.float32], kind: Kind) -> NDArray[Any]:
    """Elements as the tensor cores read them: uint16 or uint8."""
    narrow = values.astype(dtypes()[kind])
    bits: NDArray[Any] = narrow.view(np.uint16 if narrow.itemsize == 2 else np.uint8)
    return bits


def strides(mn_major: bool, swizzle: int) -> tuple[int, int]:
    """Leading and stride offsets, in bytes, of a tile of 32 bytes of k whose groups follow each other.

    Large enough for either width of an element: MN-major tiles of 8 bits hold four groups of k, not two.
    """
    if not swizzle:  # cores of 128 bytes: along k first where K-major, four of them where MN-major
        return 128, 512 if mn_major else 256
    return (8 * swizzle * 4, 8 * swizzle) if mn_major else (16, 8 * swizzle)


def image_of(bits: NDArray[Any], mn_major: bool, swizzle: int) -> tuple[Words, int, int]:
    """Shared memory that holds a matrix, (extent, k), and the strides of its descriptor."""
    leading, stride = strides(mn_major, swizzle)
    size = bits.itemsize
    i, k = np.indices(bits.shape)
    across, along = size * i, size * k
    if not swizzle and mn_major:
        at = across % 16 + across // 16 * stride + k % 8 * 16 + k // 8 * leading
    elif not swizzle:
        at = i % 8 * 16 + i // 8 * stride + along % 16 + along // 16 * leading
    elif mn_major:
        at = across % swizzle + across // swizzle * leading + k % 8 * swizzle + k // 8 * stride
    else:
        at = i % 8 * swizzle + i // 8 * stride + along
    at = swizzled(at, swizzle) // size
    assert len(np.unique(at)) == at.size
    image = np.full((int(at.max()) * size // 1024 + 1) * 1024 // size, (1 << 8 * size) // 2 - 1, bits.dtype)
    image[at] = bits
    return image.view(np.uint32), leading, stride
