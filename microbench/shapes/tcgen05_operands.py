"""Numbers for tcgen05.mma: rows of 128 bytes of every type, and what the sums of a product must come to.

Every value is exact in its type, so that NumPy multiplies the very numbers that the tensor cores do. Factors of the
block-scaled types lie as ptx/tcgen05_descriptor.cuh says; all slices of a row share them.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from microbench.machine.arch import with_feature
from microbench.shapes.matrix import Floats, bits16, values

ROW_BYTES, SLICES = 128, 4
QUARTER = 32  # lanes; row r has its factors in lane r % 32, column r / 32
A_COLUMNS, B_COLUMNS, TILE_COLUMNS = 4, 8, 4  # of factors: 128 rows of A, 256 columns of B; a copy brings four
INTEGER_SCALE = 32  # one standard deviation of an s8

BLACKWELL = with_feature("tcgen05")
# PTX ISA, 'tcgen05.mma': kind::i8 is of sm_100a and of no later chip; ptxas refuses it for sm_103a.
INTEGERS_ON = ("sm100a",)


@dataclass(frozen=True)
class Scales:
    """Factors: how many neighbours share one, the number of their type in the descriptor, and which there are.

    `values` are near 1; `codes` are their bits.
    """

    per_scale: int
    number: int
    values: tuple[float, ...]
    codes: tuple[int, ...]


UE8M0 = Scales(32, 1, (0.5, 1.0, 2.0), (126, 127, 128))  # 2^(code - 127)
UE4M3 = Scales(16, 0, (0.5, 0.75, 1.0, 1.25), (48, 52, 56, 58))  # 4 bits of exponent, bias 7, then 3 of mantissa


@dataclass(frozen=True)
class Format:
    """A type of A and B: the wrapper's kind, the type's number in the descriptor, its opcodes, and what it adds to.

    bits        that an element counts in K; in shared memory it may have fewer, and padding: `padded_from`, a type
    """

    kind: str
    number: int
    bits: int
    opcodes: tuple[str, ...]  # the same one as nvdisasm names it, architecture by architecture
    sum: str = "float"
    archs: tuple[str, ...] = BLACKWELL
    scales: Scales | None = None
    padded_from: str | None = None

    @property
    def depth(self) -> int:
        """K of one instruction."""
        return ROW_BYTES // SLICES * 8 // self.bits

    @property
    def sum_number(self) -> int:
        return 2 if self.sum == "int" else 1

    @property
    def dtype_of_sums(self) -> Any:
        return np.int32 if self.sum == "int" else np.float32


# Absent by name, beside what tcgen05.refused answers: K = 96 of mxf4 and nvfp4 (sm_103a), since where its factors lie
# stands in figures of the PTX ISA alone, and its slices of 48 bytes need descriptors that emulation lacks; f16, e5m2,
# u8, and types that differ between A and B, which take the opcode and the bytes of one that is here; sparse
# products; those of tcgen05.mma.ws.
FORMATS = {
    "bf16": Format("f16", 1, 16, ("UTCHMMA",)),
    "e4m3": Format("f8", 0, 8, ("UTCQMMA",)),
    "tf32": Format("tf32", 2, 32, ("UTCHMMA",)),
    "s8": Format("i8", 1, 8, ("UTCIMMA",), "int", INTEGERS_ON),
    "mxf8": Format("mxf8", 0, 8, ("UTCQMMA",), scales=UE8M0),
    "mxf4": Format("mxf4", 1, 4, ("UTCOMMA",), scales=UE8M0),
    "nvfp4": Format("nvf4", 1, 4, ("UTCOMMA.4X", "UTCOMMA.BLOCK16"), scales=UE4M3),
    **{
        f"{prefix}{element}": Format(kind, number, 8, ("UTCQMMA",), scales=scales, padded_from=element)
        for prefix, kind, scales in (("", "f8", None), ("mx_", "mxf8", UE8M0))
        for element, number in (("e2m3", 3), ("e3m2", 4), ("e2m1", 5))
    },
}


def _sizes(exponents: int, mantissas: int) -> NDArray[np.float64]:
    """By their bits without the sign, those of a type without infinity and NaN (OCP Microscaling Formats 1.0)."""
    exponent, mantissa = np.divmod(np.arange(2 ** (exponents + mantissas)), 2**mantissas)
    leading = (exponent > 0) * 2**mantissas
    sizes: NDArray[np.float64] = (leading + mantissa) * np.exp2(
        np.maximum(exponent, 1) - 2.0 ** (exponents - 1) + 1 - mantissas
    )
    return sizes


SIZES = {"e2m1": _sizes(2, 1), "e2m3": _sizes(2, 3), "e3m2": _sizes(3, 2)}
WIDTHS = {"e2m1": 4, "e2m3": 6, "e3m2": 6}


@dataclass(frozen=True)
class TileOperands:
    """A and B as the kernel reads them, rows of a pair's first block and then of its second; and slice 0's product.

    `scales` are for each block the tiles of A's factors, then of B's; one word of nothing where the type has none.
    """

    a: NDArray[Any]
    b: NDArray[Any]
    scales: NDArray[np.uint8]
    product: NDArray[np.float64]  # rows of A by rows of B

    @classmethod
    def of(cls, form: Format, m: int, n: int, blocks: int = 1) -> "TileOperands":
        """N(0, 1) as the type has it; the right half of A is the negative of its left one."""
        width = SLICES * form.depth
        floats = exact(form, values("normal", m + n, width))
        half, b = floats[:m, : width // 2], floats[m:]
        a = np.concatenate([half, -half], axis=1)
        left, right = a[:, : form.depth].astype(np.float64), b[:, : form.depth].astype(np.float64)
        scales = np.zeros(4, np.uint8)
        if form.scales:
            drawn = np.random.default_rng(11).integers(
                len(form.scales.values), size=(m + n, form.depth // form.scales.per_scale)
            )
            factors = np.repeat(np.array(form.scales.values)[drawn], form.scales.per_scale, axis=1)
            left, right = left * factors[:m], right * factors[m:]
            codes = np.array(form.scales.codes, np.uint8)[drawn]
            scales = scale_tiles(codes[:m], codes[m:], blocks)
        return cls(bits(form, a), bits(form, b), scales, left @ right.T)


def scale_tiles(a: NDArray[np.uint8], b: NDArray[np.uint8], blocks: int) -> NDArray[np.uint8]:
    """(blocks, tiles, 32 rows, 16 bytes): its rows of A, and all columns of B. Unused bytes are factors of 1/8.

    Of a pair with 64 rows a block, B's two tiles are of the halves of its columns (ptx/tcgen05_descriptor.cuh).
    """
    parts = np.split(b, 2 if blocks == 2 and len(a) == 128 else 1)
    held_b = [(A_COLUMNS + TILE_COLUMNS * part, codes) for part, codes in enumerate(parts)]
    image = np.full((blocks, A_COLUMNS + B_COLUMNS, QUARTER, 4), 124, np.uint8)
    for block, rows in enumerate(np.split(a, blocks)):
        for first, codes in ((0, rows), *held_b):
            row = np.arange(len(codes))
            image[block, first + row // QUARTER, row % QUARTER, : codes.shape[1]] = codes
    tiles = image.reshape(blocks, -1, TILE_COLUMNS, QUARTER, 4).swapaxes(2, 3)
    return np.ascontiguousarray(tiles).reshape(blocks, -1, QUARTER, 4 * TILE_COLUMNS)


def exact(form: Format, floats: Floats) -> Floats:
    """The nearest values that the type holds; integers are scaled first."""
    if form.sum == "int":
        return np.asarray(np.clip(np.rint(floats * INTEGER_SCALE), -127, 127), np.float32)
    if narrow := _narrow(form):
        between = (SIZES[narrow][1:] + SIZES[narrow][:-1]) / 2  # of two as near the smaller
        nearest = SIZES[narrow][np.searchsorted(between, np.abs(floats))]
        return np.asarray(np.copysign(nearest, floats), np.float32)
    kept_bits = {16: 8, 8: 4, 32: 11}[form.bits]  # of the significand, with its leading one
    fraction, exponent = np.frexp(floats)
    if form.bits == 8:
        exponent = np.maximum(exponent, -5)  # below 2^-6 e4m3 has no leading one
        fraction = floats / np.exp2(exponent)
    rounded: Floats = np.ldexp(np.rint(np.ldexp(fraction, kept_bits)), exponent - kept_bits).astype(np.float32)
    return rounded


def bits(form: Format, floats: Floats) -> NDArray[Any]:
    """Exact values as the bits of their type, of four bits two to a byte, the first in the lower half.

    Those that are padded lie sixteen to 16 bytes, ones behind them (ptx/tcgen05_descriptor.cuh).
    """
    if form.sum == "int":
        return floats.astype(np.int8)
    if form.bits == 16:
        return bits16(floats, "bf16")
    if form.bits == 32:
        return floats
    size, negative = np.abs(floats), np.signbit(floats)
    if narrow := _narrow(form):
        width = WIDTHS[narrow]
        sign = negative.astype(np.uint8) << np.uint8(width - 1)
        codes: NDArray[np.uint8] = np.searchsorted(SIZES[narrow], size).astype(np.uint8) | sign
        if not form.padded_from:
            return codes[..., ::2] | codes[..., 1::2] << 4
        held = sixteens(codes, width)
        ones = np.full((*held.shape[:-1], 16 - 2 * width), 0xFF, np.uint8)
        return np.asarray(np.concatenate([held, ones], axis=1).reshape(codes.shape), np.uint8)
    fraction, exponent = np.frexp(size)  # fraction in [1/2, 1)
    normal = (exponent + 6 << 3) + np.rint(fraction * 16).astype(np.int64) - 8
    magnitude = np.where(size < 2**-6, np.rint(size * 2**9).astype(np.int64), normal)
    return np.asarray(magnitude | negative.astype(np.int64) << 7, np.uint8)


def _narrow(form: Format) -> str | None:
    """The type of 6 or 4 bits that the elements are of."""
    return form.padded_from or ("e2m1" if form.bits == 4 else None)


def sixteens(codes: NDArray[np.uint8], width: int) -> NDArray[np.uint8]:
    """Codes of `width` bits by sixteens, packed, the first in the lowest bits: (codes / 16, 2 * width) bytes."""
    each = codes.reshape(-1, 16, 1) >> np.arange(width, dtype=np.uint8) & 1
    return np.packbits(each.reshape(-1, 16 * width), axis=1, bitorder="little")


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
