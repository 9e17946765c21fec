"""Operands of the block-scaled kinds of tcgen05.mma, and where their factors lie (PTX ISA, 'Block Scaling').

Small numbers and factors near 1, so that every sum is exact in an f32.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from microbench.verify.differential.number_formats import PADDED, bits_of, padded

ROW_BYTES = 32  # of one instruction
QUARTER = 32  # lanes; each quarter holds every factor
SCALE_BYTES = 3 * 512  # 128 rows of A, 256 columns of B, four bytes each
_VALUES = {
    "e4m3": np.arange(-4.0, 5.0),
    **dict.fromkeys(("e2m1", "padded_e2m1"), np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.5, -1, -1.5, -2, -3, -4, -6])),
    "e2m3": np.array([0, 0.125, 0.875, 1, 1.5, 2.25, 3, 4, 5.5, 7.5, -0.25, -1.125, -2, -3.75, -6]),
    "e3m2": np.array([0, 0.0625, 0.1875, 0.75, 1, 1.5, 2.5, 4, 7, 10, -0.125, -0.625, -1.25, -3, -14]),
    "ue8m0": np.exp2(np.arange(-2.0, 3.0)),
    "ue4m3": np.array([0.5, 0.75, 1, 1.125, 1.5, 2, 2.5]),
}


@dataclass(frozen=True)
class ScaledOperand:
    """A, or B by its columns: the bytes of its rows, its factors' bits, and its values as the product sees them.

    bits      (rows, 32)        factors     (rows, factors of a row)
    scaled    (rows, k) f64
    """

    bits: NDArray[np.uint8]
    factors: NDArray[np.uint8]
    scaled: NDArray[np.float64]

    def columns(self, columns: int, byte: int, rng: np.random.Generator) -> NDArray[np.uint8]:
        """The rows of 16 bytes that tcgen05.cp.32x128b brings: four columns each, (columns / 4, 32, 4, 4).

        Row r lies in lane r % 32, column r / 32. The bytes that the instruction does not name hold other factors.
        """
        image = rng.integers(120, 131, (columns, QUARTER, 4)).astype(np.uint8)
        row = np.arange(len(self.factors))
        image[row // QUARTER, row % QUARTER, byte : byte + self.factors.shape[1]] = self.factors
        return np.ascontiguousarray(image.reshape(-1, 4, QUARTER, 4).swapaxes(1, 2))


@dataclass(frozen=True)
class ScaledForm:
    """A kind with the types of its elements and factors, and the bytes of a word where the factors begin."""

    kind: str
    elements: str
    scale: str
    per_scale: int
    a_byte: int = 0
    b_byte: int = 0

    @property
    def depth(self) -> int:
        """Elements of a row in one instruction."""
        return ROW_BYTES * (2 if self.elements == "e2m1" else 1)

    def operand(self, rng: np.random.Generator, rows: int) -> ScaledOperand:
        """Random rows with a factor for each `per_scale` neighbours."""
        values = rng.choice(_VALUES[self.elements], (rows, self.depth))
        factors = rng.choice(_VALUES[self.scale], (rows, self.depth // self.per_scale))
        scaled = values * np.repeat(factors, self.per_scale, axis=1)
        bits: NDArray[Any] = bits_of(values, self.elements)
        if self.elements == "e2m1":  # the first of two in the lower half
            bits = bits[:, ::2] | bits[:, 1::2] << 4
        if self.elements in PADDED:
            bits = padded(bits, PADDED[self.elements], rng)
        return ScaledOperand(np.ascontiguousarray(bits), bits_of(factors, self.scale), scaled)


SCALED_FORMS = (
    ScaledForm("mxf8", "e4m3", "ue8m0", 32, a_byte=1, b_byte=3),
    ScaledForm("mxf8", "e2m3", "ue8m0", 32, a_byte=0, b_byte=2),
    ScaledForm("mxf8", "e3m2", "ue8m0", 32, a_byte=2, b_byte=1),
    ScaledForm("mxf8", "padded_e2m1", "ue8m0", 32, a_byte=3, b_byte=0),
    ScaledForm("mxf4", "e2m1", "ue8m0", 32, a_byte=2, b_byte=0),
    ScaledForm("nvf4", "e2m1", "ue8m0", 16),
    ScaledForm("nvf4", "e2m1", "ue4m3", 16),
)
