"""What NumPy and ml_dtypes make of small instructions."""

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

from tests.emulated.sources import source_of

SOURCE, NAME = source_of("arithmetic.cu")
Words = NDArray[np.uint32]
Model = Callable[[Words, Words, Words], NDArray[Any]]
E4M3, E5M2, BF16 = ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2, ml_dtypes.bfloat16


def f32(words: Words) -> NDArray[np.float32]:
    return words.view(np.float32)


def halves(words: Words, kind: Any) -> NDArray[Any]:
    """(lanes, 2) of a 16-bit type, the lower half first."""
    return np.ascontiguousarray(words)[:, None].view(np.uint16).view(kind)


def fp8(values: NDArray[Any], kind: Any) -> NDArray[np.uint32]:
    """Two values a lane, (lanes, 2), as a word of two saturated bytes. Every NaN is 0x7F."""
    most = float(ml_dtypes.finfo(kind).max)
    codes = np.clip(values, -most, most).astype(kind).view(np.uint8)
    codes = np.where(np.isnan(values), np.uint8(0x7F), codes).astype(np.uint32)
    words: NDArray[np.uint32] = codes[:, 0] | codes[:, 1] << 8
    return words


def bytes_picked(a: Words, b: Words, selector: Words) -> Words:
    """PRMT, byte by byte."""
    source = np.stack([a, b], 1).view(np.uint8)
    picked = np.empty((len(a), 4), np.uint8)
    for i in range(4):
        nibble = selector >> 4 * i & 15
        byte = np.take_along_axis(source, (nibble & 7)[:, None].astype(np.int64), 1)[:, 0]
        picked[:, i] = np.where(nibble & 8, np.where(byte & 0x80, 0xFF, 0), byte)
    return picked.view(np.uint32)[:, 0]


def everywhere(value: Any) -> NDArray[Any]:
    return np.full(32, value)


EXACT: dict[str, Model] = {
    "ptx::prmt(x, y, z)": bytes_picked,
    "ptx::prmt(x, y, 0x5410)": lambda x, y, z: x & 0xFFFF | y << 16,
    "ptx::lop3<0xE8>(x, y, z)": lambda x, y, z: x & y | x & z | y & z,
    "ptx::lop3<0x96>(x, y, z)": lambda x, y, z: x ^ y ^ z,
    "ptx::lop3<(0xF0 & ~0xCC | 0xAA) & 0xFF>(x, y, z)": lambda x, y, z: x & ~y | z,
    "ptx::redux_add(x)": lambda x, y, z: everywhere(x.sum(dtype=np.uint32)),
    "ptx::redux_add(int(y))": lambda x, y, z: everywhere(y.sum(dtype=np.uint32)),
    "ptx::redux_min(x)": lambda x, y, z: everywhere(x.min()),
    "ptx::redux_max(x)": lambda x, y, z: everywhere(x.max()),
    "ptx::redux_min(int(x))": lambda x, y, z: everywhere(x.view(np.int32).min()).view(np.uint32),
    "ptx::redux_max(int(x))": lambda x, y, z: everywhere(x.view(np.int32).max()).view(np.uint32),
    "ptx::redux_and(x)": lambda x, y, z: everywhere(np.bitwise_and.reduce(x)),
    "ptx::redux_or(x)": lambda x, y, z: everywhere(np.bitwise_or.reduce(x)),
    "ptx::redux_xor(x)": lambda x, y, z: everywhere(np.bitwise_xor.reduce(x)),
    "(threadIdx.x < 8 ? ptx::redux_add(x, 0xFFu) : ptx::redux_max(x, ~0xFFu))": lambda x, y, z: np.repeat(
        [x[:8].sum(dtype=np.uint32), x[8:].max()], [8, 24]
    ),
    "ptx::pack_e4m3(fx, fy)": lambda x, y, z: fp8(np.stack([f32(x), f32(y)], 1), E4M3),
    "ptx::pack_e5m2(fx, fy)": lambda x, y, z: fp8(np.stack([f32(x), f32(y)], 1), E5M2),
    "ptx::f16x2_to_e4m3(x)": lambda x, y, z: fp8(halves(x, np.float16).astype(np.float32), E4M3),
    "ptx::f16x2_to_e5m2(x)": lambda x, y, z: fp8(halves(x, np.float16).astype(np.float32), E5M2),
}


def nearest_tf32(x: Words, y: Words, z: Words) -> NDArray[Any]:
    """Eleven bits of mantissa kept, ties away from zero, by frexp and not by bits."""
    mantissa, exponent = np.frexp(f32(x).astype(np.float64))
    # An exponent below the least normal one keeps fewer bits.
    kept = np.minimum(11, exponent + 125 + 11)
    scaled = np.abs(mantissa) * 2.0**kept
    return np.copysign(np.floor(scaled + 0.5) * 2.0 ** (exponent - kept), mantissa).astype(np.float32)


def largest(values: NDArray[np.float32], axis: int | None = 0) -> NDArray[Any]:
    """Of the numbers among them. np.fmax takes a signalling NaN for a number."""
    most = np.where(np.isnan(values), -np.inf, values).max(axis)
    chosen: NDArray[Any] = np.where(np.isnan(values).all(axis), np.nan, most)
    return chosen


# Values in f32: a NaN for a NaN, and either zero.
FLOATS: dict[str, Model] = {
    "ptx::fadd2({fx, fy}, {fz, fx}).x": lambda x, y, z: f32(x) + f32(z),
    "ptx::fadd2({fx, fy}, {fz, fx}).y": lambda x, y, z: f32(y) + f32(x),
    "ptx::fmul2({fx, fy}, {fz, fx}).x": lambda x, y, z: f32(x) * f32(z),
    "ptx::fmul2({fx, fy}, {fz, fx}).y": lambda x, y, z: f32(y) * f32(x),
    "ptx::fadd2(ptx::fmul2({fx, fy}, {fz, fx}), {fy, fz}).x": lambda x, y, z: f32(x) * f32(z) + f32(y),
    "ptx::fmax3(fx, fy, fz)": lambda x, y, z: largest(np.stack([f32(x), f32(y), f32(z)])),
    "ptx::fmin3(fx, fy, fz)": lambda x, y, z: -largest(-np.stack([f32(x), f32(y), f32(z)])),
    "ptx::max_nan(fx, fy)": lambda x, y, z: np.maximum(f32(x), f32(y)),
    "ptx::redux_max(fx)": lambda x, y, z: everywhere(largest(f32(x), None)),
    "ptx::redux_min(fx)": lambda x, y, z: everywhere(-largest(-f32(x), None)),
    "ptx::unpack_f16(x).x": lambda x, y, z: halves(x, np.float16)[:, 0].astype(np.float32),
    "ptx::unpack_f16(x).y": lambda x, y, z: halves(x, np.float16)[:, 1].astype(np.float32),
    "ptx::unpack_bf16(x).x": lambda x, y, z: halves(x, BF16)[:, 0].astype(np.float32),
    "ptx::unpack_bf16(x).y": lambda x, y, z: halves(x, BF16)[:, 1].astype(np.float32),
    "__uint_as_float(ptx::round_tf32(fx))": nearest_tf32,
}


def fp8_halves(words: Words, kind: Any) -> NDArray[np.float16]:
    """The lower two bytes of each word as f16."""
    return np.ascontiguousarray(words)[:, None].view(np.uint8)[:, :2].view(kind).astype(np.float16)


# Two values of a 16-bit type, and how far they may be off: (type, relative, absolute).
PAIRS: dict[str, tuple[Model, Any, float, float]] = {
    "ptx::e4m3_to_f16x2((unsigned short)x)": (lambda x, y, z: fp8_halves(x, E4M3), np.float16, 0, 0),
    "ptx::e5m2_to_f16x2((unsigned short)x)": (lambda x, y, z: fp8_halves(x, E5M2), np.float16, 0, 0),
    "ptx::tanh_f16x2(x)": (lambda x, y, z: np.tanh(halves(x, np.float16).astype(float)), np.float16, 0, 2**-10.987),
    "ptx::tanh_bf16x2(x)": (lambda x, y, z: np.tanh(halves(x, BF16).astype(float)), BF16, 0, 2**-8),
    "ptx::ex2_f16x2(x)": (lambda x, y, z: np.exp2(halves(x, np.float16).astype(float)), np.float16, 2**-9.9, 2**-24),
    "ptx::ex2_bf16x2(x)": (lambda x, y, z: np.exp2(halves(x, BF16).astype(float)), BF16, 2**-7, 2**-126),
}
CLOSE: dict[str, tuple[Model, float]] = {
    "ptx::tanh(fx)": (lambda x, y, z: np.tanh(f32(x).astype(float)), 2**-11),
    "ptx::ffma2({fx, fy}, {fz, fx}, {fy, fz}).x": (lambda x, y, z: f32(x).astype(float) * f32(z) + f32(y), 2**-23),
    "ptx::ffma2({fx, fy}, {fz, fx}, {fy, fz}).y": (lambda x, y, z: f32(y).astype(float) * f32(x) + f32(z), 2**-23),
}
