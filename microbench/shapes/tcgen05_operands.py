"""Numbers for tcgen05.mma: rows of 128 bytes of every type, and what the sums of a product must come to.

Every value is exact in its type, so that NumPy multiplies the very numbers that the tensor cores do.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from microbench.machine.arch import with_feature
from microbench.shapes.matrix import Floats, bits16, values

ROW_BYTES, SLICES = 128, 4
INTEGER_SCALE = 32  # one standard deviation of an s8

BLACKWELL = with_feature("tcgen05")
# PTX ISA, 'tcgen05.mma': kind::i8 is of sm_100a and of no later chip; ptxas refuses it for sm_103a.
INTEGERS_ON = ("sm100a",)


@dataclass(frozen=True)
class Format:
    """A type of A and B: the wrapper's kind, the type's number in the descriptor, its opcode, and what it adds to."""

    kind: str
    number: int
    nbytes: int
    opcode: str
    sum: str = "float"
    archs: tuple[str, ...] = BLACKWELL

    @property
    def sum_number(self) -> int:
        return 2 if self.sum == "int" else 1

    @property
    def dtype_of_sums(self) -> Any:
        return np.int32 if self.sum == "int" else np.float32


FORMATS = {
    "bf16": Format("f16", 1, 2, "UTCHMMA"),
    "e4m3": Format("f8", 0, 1, "UTCQMMA"),
    "tf32": Format("tf32", 2, 4, "UTCHMMA"),
    "s8": Format("i8", 1, 1, "UTCIMMA", "int", INTEGERS_ON),
}


@dataclass(frozen=True)
class TileOperands:
    """A and B as the kernel reads them, rows of a pair's first block and then of its second; and slice 0's product."""

    a: NDArray[Any]
    b: NDArray[Any]
    product: NDArray[np.float64]  # rows of A by rows of B

    @classmethod
    def of(cls, form: Format, m: int, n: int) -> "TileOperands":
        """N(0, 1) as the type has it; the right half of A is the negative of its left one."""
        width = ROW_BYTES // form.nbytes
        floats = exact(form, values("normal", m + n, width))
        half, b = floats[:m, : width // 2], floats[m:]
        a = np.concatenate([half, -half], axis=1)
        depth = width // SLICES
        product = a[:, :depth].astype(np.float64) @ b[:, :depth].astype(np.float64).T
        return cls(bits(form, a), bits(form, b), product)


def exact(form: Format, floats: Floats) -> Floats:
    """The nearest values that the type holds; integers are scaled first."""
    if form.sum == "int":
        return np.asarray(np.clip(np.rint(floats * INTEGER_SCALE), -127, 127), np.float32)
    kept_bits = {"f16": 8, "f8": 4, "tf32": 11}[form.kind]  # of the significand, with its leading one
    fraction, exponent = np.frexp(floats)
    if form.kind == "f8":
        exponent = np.maximum(exponent, -5)  # below 2^-6 e4m3 has no leading one
        fraction = floats / np.exp2(exponent)
    rounded: Floats = np.ldexp(np.rint(np.ldexp(fraction, kept_bits)), exponent - kept_bits).astype(np.float32)
    return rounded


def bits(form: Format, floats: Floats) -> NDArray[Any]:
    """Exact values as the bits of their type."""
    if form.sum == "int":
        return floats.astype(np.int8)
    if form.kind == "f16":
        return bits16(floats, "bf16")
    if form.kind == "tf32":
        return floats
    size = np.abs(floats)
    fraction, exponent = np.frexp(size)  # fraction in [1/2, 1)
    normal = (exponent + 6 << 3) + np.rint(fraction * 16).astype(np.int64) - 8
    magnitude = np.where(size < 2**-6, np.rint(size * 2**9).astype(np.int64), normal)
    signs = np.signbit(floats).astype(np.int64) << 7
    return np.asarray(magnitude | signs, np.uint8)


def lane_sums(operands: TileOperands, rows: int, blocks: int) -> NDArray[np.float64]:
    """The sum of each lane of D, of one block or of the two of a pair.

    64 rows of one block lie in the lower halves of the warps' lanes. 64 rows of each block of a pair lie in its lower
    64 lanes, which hold half of the columns; the upper ones hold the other half.
    """
    if rows == 64 and blocks == 2:
        halves = np.stack(np.split(operands.product, 2, axis=1)).sum(axis=2)  # half of the columns, row
        return np.asarray(halves.reshape(2, 2, 64).swapaxes(0, 1).reshape(-1))
    sums: NDArray[np.float64] = operands.product.sum(axis=1)
    if rows == 64:
        spread = np.zeros((4, 2, 16))
        spread[:, 0] = sums.reshape(4, 16)
        return spread.reshape(-1)
    return sums
