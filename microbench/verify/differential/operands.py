"""Random matrices for tensor cores, and the registers that hold them.

Integers cover what is exact: each seed draws how wide a and b are, so that a product of two wide ones, of a wide and a
narrow one, and a wide accumulator all occur, while no sum leaves the integers that the accumulator holds exactly.
"""

import math

import numpy as np
from numpy.typing import NDArray

from microbench.verify.differential.attention_case import bf16_bits
from microbench.verify.differential.case import F32_TOLERANCE, Array, Values

# Kinds of values for sums in f32, and how far they may come apart.
NUMBERS: tuple[tuple[Values, float], ...] = (("integers", 0.0), ("normal", F32_TOLERANCE))


def fragments(values: Array, kind: str) -> NDArray[np.uint32]:
    """(seeds, lanes, elements) as the registers that hold them."""
    if kind in ("tf32", "f32"):
        return np.ascontiguousarray(values, np.float32).view(np.uint32)
    return np.ascontiguousarray(bits(values, kind)).view(np.uint32)


def bits(values: Array, kind: str) -> NDArray[np.uint16]:
    """The 16 bits of each value."""
    return values.astype(np.float16).view(np.uint16) if kind == "f16" else bf16_bits(values)


def operands(
    values: Values, seeds: range, kind: str, a: tuple[int, ...], b: tuple[int, ...], c: tuple[int, ...], f32: bool
) -> tuple[Array, Array, Array]:
    """a, b and c of shapes (seeds, *shape), float32; the depth is the last side of a."""
    drawn: list[tuple[Array, Array, Array]] = []
    # f16 and tf32 hold integers up to 2^11, bf16 up to 2^8; half of the accumulator's 2^24 or 2^11 is for the products.
    widest, room = (8 if kind == "bf16" else 11), (23 if f32 else 10) - int(math.log2(a[-1]))
    for seed in seeds:
        rng = np.random.default_rng(seed)
        if values == "normal":
            x, y, z = (rng.standard_normal(shape) for shape in (a, b, c))
        else:
            left = int(rng.integers(0, min(widest, room) + 1))
            tops = 2**left, 2 ** min(widest, room - left), 2 ** (23 if f32 else 10)
            x, y, z = (rng.integers(-top, top + 1, s).astype(float) for top, s in zip(tops, (a, b, c), strict=True))
        drawn.append((x, y, z))
    first, second, start = (np.stack(each).astype(np.float32) for each in zip(*drawn, strict=True))
    return first, second, start


def product(values: Values, a: Array, b: Array, c: Array) -> Array | None:
    """A b + c where NumPy has it exactly, of integers."""
    if values != "integers":
        return None
    exact: Array = (a.astype(np.float64) @ b + c).astype(np.float32)
    return exact


def answers(*given: Array | None) -> tuple[Array, ...]:
    """Those that there are."""
    return tuple(each for each in given if each is not None)
