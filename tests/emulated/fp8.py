"""8-bit floats for the tests: every value by its bits."""

from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

Fp8 = Literal["e4m3", "e5m2"]


def values(kind: Fp8) -> NDArray[np.float32]:
    """What each of the 256 patterns is worth: OCP 8-bit floating point, revision 1.0, tables 1 and 2."""
    bits = np.arange(256, dtype=np.int64)
    mantissa_bits, bias = (3, 7) if kind == "e4m3" else (2, 15)
    exponent, mantissa = bits % 128 >> mantissa_bits, bits % (1 << mantissa_bits)
    size = np.where(exponent > 0, 1 + mantissa / 2**mantissa_bits, 2 * mantissa / 2**mantissa_bits)
    size = size * 2.0 ** (exponent - bias)
    top = (1 << 7 - mantissa_bits) - 1
    if kind == "e4m3":
        size[bits % 128 == 127] = np.nan
    else:
        size[exponent == top] = np.where(mantissa[exponent == top] == 0, np.inf, np.nan)
    return np.where(bits >= 128, -size, size).astype(np.float32)


def narrowed(numbers: NDArray[Any], kind: Fp8) -> NDArray[np.uint8]:
    """The bits of the nearest finite value of each number."""
    table = values(kind)
    finite = np.flatnonzero(np.isfinite(table))
    order = finite[np.argsort(table[finite], kind="stable")]
    middles = (table[order][1:] + table[order][:-1]) / 2
    return order[np.searchsorted(middles, numbers)].astype(np.uint8)
