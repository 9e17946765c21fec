"""Where each lane's registers lie in the matrices, as the PTX ISA's tables say: what packs and unpacks them.

Every function gives, for (lane, i), the (row, column) of element i of that lane's fragment, as arrays.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

Places = tuple[NDArray[np.int64], NDArray[np.int64]]  # rows, columns


def grid(lanes: int, elements: int) -> Places:
    """The number of each element's lane, and its own in the lane."""
    lane, i = np.indices((lanes, elements))
    return lane, i


def mma_accumulator() -> Places:
    """D of m16n8 of every depth."""
    lane, i = grid(32, 4)
    return lane // 4 + i // 2 * 8, lane % 4 * 2 + i % 2


def mma_a(k: int, per_word: int = 2) -> Places:
    """A of m16n8 of depth k, in words that hold `per_word` neighbours in k."""
    lane, i = grid(32, 16 * k // 32)
    word, half = i // per_word, i % per_word
    return lane // 4 + word % 2 * 8, lane % 4 * per_word + word // 2 * 4 * per_word + half


def mma_b(k: int, per_word: int = 2) -> Places:
    """B of the same, as (k, column)."""
    lane, i = grid(32, 8 * k // 32)
    word, half = i // per_word, i % per_word
    return lane % 4 * per_word + word * 4 * per_word + half, lane // 4


def volta_operand(along_k: bool) -> Places:
    """A of m8n8k4 as (row, k), b as (column, k), for one quad pair: element i of a lane runs along k, or across."""
    lane, i = grid(32, 4)
    t, half = lane % 4, lane // 16
    return (t + 4 * half, i) if along_k else (i + 4 * half, t)


def volta_accumulator(f32: bool) -> Places:
    """D of m8n8k4 in one quad pair."""
    lane, i = grid(32, 8)
    t, half = lane % 4, lane // 16
    if not f32:
        return t + 4 * half, i
    return (t & 1) + (i & 2) + 4 * half, (i & 4) + (t & 2) + (i & 1)


def quad_pair() -> NDArray[np.int64]:
    """The product of m8n8k4 that a lane works for, (32, 1)."""
    return grid(32, 1)[0] % 16 // 4


def wgmma_accumulator(columns: int) -> Places:
    """D of wgmma m64nN of every depth, 128 threads."""
    thread, i = grid(128, columns // 2)
    lane, warp = thread % 32, thread // 32
    return warp * 16 + lane // 4 + i // 2 % 2 * 8, i // 4 * 8 + lane % 4 * 2 + i % 2


def wgmma_a(k: int = 16, per_word: int = 2) -> Places:
    """A of wgmma from registers: that of mma.sync of the same depth in each warp."""
    rows, ks = mma_a(k, per_word)
    return np.concatenate([rows + 16 * warp for warp in range(4)]), np.tile(ks, (4, 1))


def descriptor_offset(i: Any, k: Any, size: int, mn_major: bool, swizzle: int, leading: int, stride: int) -> Any:
    """Byte of element (i, k), of `size` bytes, of a matrix in shared memory, before the swizzle."""
    across, along = size * i, size * k
    if mn_major and swizzle:
        return across % swizzle + across // swizzle * leading + k % 8 * swizzle + k // 8 * stride
    if mn_major:
        return across % 16 + across // 16 * stride + k % 8 * 16 + k // 8 * leading
    if swizzle:
        return i % 8 * swizzle + i // 8 * stride + along
    return i % 8 * 16 + i // 8 * stride + along % 16 + along // 16 * leading


def swizzled(offset: Any, span: int) -> Any:
    """Where a byte lies under a swizzle of `span` bytes, 0 for none; tiles start at multiples of eight spans."""
    bits = {0: 0, 32: 1, 64: 2, 128: 3}[span]
    return offset ^ ((offset >> 7 & ((1 << bits) - 1)) << 4)


def image_of(bits: NDArray[Any], mn_major: bool, swizzle: int) -> tuple[NDArray[np.uint32], int, int]:
    """Shared memory that holds matrices, (..., extent, k) with 32 bytes of k, and the strides of its descriptor.

    Between the elements lie NaNs, or the largest integers: who reads them shows it.
    """
    size, groups = bits.itemsize, bits.shape[-1] // 8
    if not swizzle:  # cores of 128 bytes: those along k first
        leading, stride = 128, 128 * groups if mn_major else 256
    elif mn_major:
        leading, stride = 8 * swizzle * groups, 8 * swizzle  # the groups of k one after another, then the next span
    else:
        leading, stride = 16, 8 * swizzle
    i, k = np.indices(bits.shape[-2:])
    at = swizzled(descriptor_offset(i, k, size, mn_major, swizzle, leading, stride), swizzle) // size
    whole = (int(at.max()) * size // 1024 + 1) * 1024 // size
    image = np.full((*bits.shape[:-2], whole), (1 << 8 * size) // 2 - 1, bits.dtype)
    image[..., at] = bits
    return image.view(np.uint32), leading, stride
