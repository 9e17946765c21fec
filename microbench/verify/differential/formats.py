"""The formats that tensor_cores.py and warpgroups.py leave out: 8-bit integers, fp8, f16 sums, tf32 in wgmma."""

import itertools
from functools import partial
from typing import Any

import numpy as np

from microbench.verify.differential import layouts, number_formats
from microbench.verify.differential.case import F16_TOLERANCE, F32_TOLERANCE, Array, Buffer, Case, Launch, Values
from microbench.verify.differential.number_formats import (
    FLOAT_N,
    INTEGER_N,
    MMA,
    WGMMA,
    Wrapper,
    bits_of,
    integer_sum,
    registers,
    values_of,
)
from microbench.verify.differential.operands import answers

FP8_F16_TOLERANCE = 2.0**-7

SOURCE = number_formats.SOURCE
FP8 = ("e4m3", "e5m2")
# Hopper's wgmma keeps 13 bits of an fp8 product below the largest of its 33 terms (DeepSeek-V3, section 3.5.2, arXiv
# 2412.19437), here below 32: each loses up to 2^-9.
FP8_TOLERANCE = 33 * 2.0**-9
WIDTHS = {"s32": (8, 24, 64, INTEGER_N[-1]), "f32": (8, 24, 64, FLOAT_N[-1])}


def drawn(
    wrapper: Wrapper, values: Values, seeds: range, a: tuple[int, int], b: tuple[int, int], c: tuple[int, int]
) -> tuple[Array, Array, Array]:
    """A and b as bits, c as sums, (seeds, ...) each.

    Integers of 8 bits are any. Those of floats are so small that every sum is exact: in f16, which holds integers up to
    2048, and in the 13 bits of fp8.
    """
    made: list[tuple[Array, Array, Array]] = []
    for seed in seeds:
        rng = np.random.default_rng(seed)
        if wrapper.sums == "s32":
            ends = rng.integers(-(2**31), 2**31, c).astype(np.int32)
            made.append((rng.integers(0, 256, a, np.uint8), rng.integers(0, 256, b, np.uint8), ends))
            continue
        if values == "normal":
            x, y, z = (rng.standard_normal(shape) for shape in (a, b, c))
        else:
            tops = (4, 4, 1024) if wrapper.sums == "f16" else (8, 8, 1024)
            x, y, z = (rng.integers(-top, top + 1, s).astype(float) for top, s in zip(tops, (a, b, c), strict=True))
        made.append((bits_of(x, wrapper.a), bits_of(y, wrapper.b), z.astype(number_formats.SUMS[wrapper.sums])))
    first, second, start = (np.stack(each) for each in zip(*made, strict=True))
    return first, second, start


def product(wrapper: Wrapper, values: Values, a: Array, b: Array, c: Array) -> Array | None:
    """A (seeds, m, k), b (seeds, k, n): what NumPy says where it is exact."""
    x, y = values_of(a, wrapper.a), values_of(b, wrapper.b)
    if wrapper.sums == "s32":
        return integer_sum(x, y, c, wrapper.saturates)
    exact: Array = (x @ y + c).astype(c.dtype)
    return exact if values == "integers" else None


def mma(wrapper: Wrapper, values: Values, seeds: range) -> list[Launch]:
    """One mma.sync of this wrapper."""
    a, b, c = drawn(wrapper, values, seeds, (16, wrapper.k), (wrapper.k, 8), (16, 8))
    (ra, ka), (kb, cb) = layouts.mma_a(wrapper.k, wrapper.per_word), layouts.mma_b(wrapper.k, wrapper.per_word)
    rd, cd = layouts.mma_accumulator()
    arrays = registers(a[:, ra, ka]), registers(b[:, kb, cb]), np.ascontiguousarray(c[:, rd, cd])
    exact = product(wrapper, values, a, b, c)
    args: tuple[Buffer | int, ...] = (_built_with(wrapper).index(wrapper), *map(Buffer, range(3)))
    return [Launch((len(seeds),), (32,), 0, arrays, args, (2,), answers(None if exact is None else exact[:, rd, cd]))]


def wgmma(
    wrapper: Wrapper, columns: int, from_registers: bool, swizzle: int, values: Values, seeds: range
) -> list[Launch]:
    """One wgmma of this wrapper, a from shared memory or from registers."""
    a, b, c = drawn(wrapper, values, seeds, (64, wrapper.k), (columns, wrapper.k), (64, columns))
    (ra, ka), (rd, cd) = layouts.wgmma_a(wrapper.k, wrapper.per_word), layouts.wgmma_accumulator(columns)
    images, strides = [], []
    for matrices in (a, b):
        image, *both = layouts.image_of(matrices, False, swizzle)
        images.append(image)
        strides.append(both)
    arrays = *images, registers(a[:, ra, ka]), np.ascontiguousarray(c[:, rd, cd])
    described: list[Any] = [part for i in range(2) for part in (Buffer(i), images[i].shape[1], *strides[i])]
    exact = product(wrapper, values, a, b.swapaxes(1, 2), c)
    args = (columns, int(from_registers), swizzle, *described, Buffer(2), Buffer(3))
    expected = answers(None if exact is None else exact[:, rd, cd])
    return [Launch((len(seeds),), (128,), 65536, arrays, args, (3,), expected)]


def cases() -> list[Case]:
    """Integers exactly; floats on small integers exactly, and on normal values within a tolerance."""
    return [*_mma(), *_wgmma()]


def _kinds(wrapper: Wrapper, tolerance: float) -> tuple[tuple[Values, float], ...]:
    if wrapper.sums == "s32":
        return (("bits", 0.0),)
    return ("integers", 0.0), ("normal", tolerance)


def _built_with(wrapper: Wrapper) -> tuple[Wrapper, ...]:
    """Those of its build: fp8 has one of its own, since Ampere has the others alone."""
    return tuple(each for each in MMA if (each.a in FP8) == (wrapper.a in FP8))


def _mma() -> list[Case]:
    made = []
    for each in MMA:
        if each.sums == "f32" and each.per_word < 4 and each.k > 4:
            continue  # in tensor_cores.py
        # fp8 with f16 sums is two products of halves: the sum is rounded to f16 in between (seen on an H100: 0.0044).
        coarse = FP8_F16_TOLERANCE if each.per_word == 4 else F16_TOLERANCE
        tolerance = coarse if each.sums == "f16" else F32_TOLERANCE
        for values, off in _kinds(each, tolerance):
            name, run = f"mma_m16n8k{each.k}_{each.name}", partial(mma, each, values)
            defines = number_formats.mma_defines(_built_with(each))
            made.append(Case(name, f"row.col {each.sums} sums", values, "mma", defines, run, off, SOURCE))
    return made


def _wgmma() -> list[Case]:
    made = []
    shapes = itertools.product(WGMMA[2:], (False, True))
    for each, from_registers in shapes:
        tolerance = FP8_TOLERANCE if each.per_word == 4 else F32_TOLERANCE
        sizes = [(n, 128) for n in WIDTHS[each.sums]] + [(64, span) for span in (0, 32, 64)]
        for (n, span), (values, off) in itertools.product(sizes, _kinds(each, tolerance)):
            name = f"wgmma_{each.name}_{'rs' if from_registers else 'ss'}"
            layout = f"n{n} {'registers' if from_registers else 'K'}.K swizzle {span}"
            run = partial(wgmma, each, n, from_registers, span, values)
            defines = number_formats.wgmma_defines(each, WIDTHS[each.sums])
            made.append(Case(name, layout, values, "wgmma", defines, run, off, SOURCE))
    return made
