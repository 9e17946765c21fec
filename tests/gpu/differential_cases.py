"""Every wrapper of sm70, sm80 and sm90a with random inputs that a GPU and the emulator are both given.

Integers cover what is exact: each seed draws how wide a and b are, so that a product of two wide ones, of a wide and a
narrow one, and a wide accumulator all occur, while no sum leaves the integers that the accumulator holds exactly.
"""

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache, partial
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from microbench.emulator import Swizzle
from microbench.emulator.tensor_map import Element
from tests.emulated import layouts
from tests.emulated.attention_case import SCALE_LOG2, attention_case, bf16_bits

HERE = Path(__file__).parent
SOURCE = HERE / "differential.cu"
EMULATED = HERE.parent / "emulated"
Values = Literal["integers", "normal", "bits"]
Array = NDArray[Any]

# Tensor cores align products and truncate. Of up to 16 products of N(0, 1) and a start value, the largest is below 32,
# so each of the 17 terms loses less than 2^-19 where 24 bits are kept; the emulator's own rounding is smaller.
F32_TOLERANCE = 2.0**-14
# An f16 has 11 bits; either side may round to another neighbour, of a sum that was cut off before.
F16_TOLERANCE = 2.0**-9
EX2_TOLERANCE = (
    2.0**-21
)  # relative above 1, absolute below; 2 units in the last place on the GPU (PTX ISA, 'ex2'), one here
# Weights are rounded to bf16: one that falls to the other neighbour moves an average of N(0, 1) by 2^-9 of its weight.
ATTENTION_TOLERANCE = 4e-3


@dataclass(frozen=True)
class Buffer:
    """An argument: the launch's array of this number."""

    index: int


@dataclass(frozen=True)
class Maps:
    """An argument: a tensor map of the launch's array of this number."""

    index: int
    box: tuple[int, ...]
    element: Element
    swizzle: Swizzle


@dataclass(frozen=True)
class Launch:
    """One launch. `outputs` are the numbers of arrays to compare, `expected` what NumPy says of them where it does."""

    grid: tuple[int, ...]
    block: tuple[int, ...]
    smem_bytes: int
    arrays: tuple[Array, ...]
    args: tuple[Buffer | Maps | int | float, ...]
    outputs: tuple[int, ...]
    expected: tuple[Array, ...] = ()


@dataclass(frozen=True)
class Case:
    """A wrapper in one layout. `tolerance` 0 asks for equality; else absolute up to values of 1, relative above."""

    wrapper: str
    layout: str
    values: Values
    kernel: str
    defines: tuple[tuple[str, int | str], ...]
    launches: Callable[[range], list[Launch]] = field(compare=False)
    tolerance: float = 0.0
    source: Path = SOURCE

    @property
    def key(self) -> str:
        return f"{self.wrapper} {self.layout} {self.values}"


def fragments(values: Array, kind: str) -> NDArray[np.uint32]:
    """(seeds, lanes, elements) as the registers that hold them."""
    if kind in ("tf32", "f32"):
        return np.ascontiguousarray(values, np.float32).view(np.uint32)
    return np.ascontiguousarray(bits(values, kind)).view(np.uint32)


def bits(values: Array, kind: str) -> NDArray[np.uint16]:
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
    if values != "integers":
        return None
    exact: Array = (a.astype(np.float64) @ b + c).astype(np.float32)
    return exact


def _answers(*given: Array | None) -> tuple[Array, ...]:
    return tuple(each for each in given if each is not None)


def mma_sync(kind: str, k: int, values: Values, seeds: range) -> list[Launch]:
    per_word = 1 if kind == "tf32" else 2
    a, b, c = operands(values, seeds, kind, (16, k), (k, 8), (16, 8), True)
    (ra, ka), (kb, cb), (rd, cd) = layouts.mma_a(k, per_word), layouts.mma_b(k, per_word), layouts.mma_accumulator()
    arrays = fragments(a[:, ra, ka], kind), fragments(b[:, kb, cb], kind), np.ascontiguousarray(c[:, rd, cd])
    exact = product(values, a, b, c)
    expected = _answers(None if exact is None else exact[:, rd, cd])
    return [Launch((len(seeds),), (32,), 0, arrays, (Buffer(0), Buffer(1), Buffer(2)), (2,), expected)]


def volta(a_order: str, b_order: str, f32: bool, values: Values, seeds: range) -> list[Launch]:
    a, b, c = operands(values, seeds, "f16", (4, 8, 4), (4, 4, 8), (4, 8, 8), f32)
    pair, (rd, cd) = layouts.quad_pair(), layouts.volta_accumulator(f32)
    (ra, ka), (cb, kb) = layouts.volta_operand(a_order == "row"), layouts.volta_operand(b_order == "col")
    d = np.ascontiguousarray(c[:, pair, rd, cd])
    sums = d if f32 else d.astype(np.float16)
    arrays = fragments(a[:, pair, ra, ka], "f16"), fragments(b[:, pair, kb, cb], "f16"), sums
    exact = product(values, a, b, c)
    expected = _answers(None if exact is None else exact[:, pair, rd, cd])
    return [Launch((len(seeds),), (32,), 0, arrays, (Buffer(0), Buffer(1), Buffer(2)), (2,), expected)]


def load_matrices(count: int, seeds: range) -> list[Launch]:
    rngs = [np.random.default_rng(seed) for seed in seeds]
    image = np.stack([rng.integers(0, 1 << 16, (64, 8)).astype(np.uint16) for rng in rngs])
    chosen = np.stack([rng.permutation(64)[:32] for rng in rngs])
    plain, trans = np.zeros((2, len(seeds), 32, count, 2), np.uint16)
    arrays = image, (chosen * 16).astype(np.uint32), plain, trans
    matrices = np.take_along_axis(image, chosen[:, : 8 * count, None], 1).reshape(-1, count, 8, 8)
    lane, half = np.indices((32, 2))
    by_rows = matrices[:, :, lane // 4, lane % 4 * 2 + half].swapaxes(1, 2)
    by_columns = matrices[:, :, lane % 4 * 2 + half, lane // 4].swapaxes(1, 2)
    args = tuple(map(Buffer, range(4)))
    return [Launch((len(seeds),), (32,), 1024, arrays, args, (2, 3), (by_rows, by_columns))]


def store_matrices(count: int, seeds: range) -> list[Launch]:
    rngs = [np.random.default_rng(seed) for seed in seeds]
    fragment = np.stack([rng.integers(0, 1 << 16, (32, count, 2)).astype(np.uint16) for rng in rngs])
    order = np.stack([rng.permutation(8 * count) for rng in rngs])
    rows = np.tile(order, 4)[:, :32] if count < 4 else order
    plain, trans = np.zeros((2, len(seeds), 8 * count, 8), np.uint16)
    arrays = fragment, (rows * 16).astype(np.uint32), plain, trans
    return [Launch((len(seeds),), (32,), 1024, arrays, tuple(map(Buffer, range(4))), (2, 3))]


def image_of(matrix: NDArray[np.uint16], mn_major: bool, swizzle: int) -> tuple[Array, int, int]:
    """Shared memory that holds `matrix`, (seeds, extent, 16), a row a seed, and the strides of its descriptor."""
    if not swizzle:
        leading, stride = 128, 256  # cores of 128 bytes: those along k first
    elif mn_major:
        leading, stride = 16 * swizzle, 8 * swizzle  # two groups of k one after another, then the next span
    else:
        leading, stride = 16, 8 * swizzle
    i, k = np.indices(matrix.shape[1:])
    at = layouts.swizzled(layouts.descriptor_offset(i, k, mn_major, swizzle, leading, stride), swizzle) // 2
    size = (int(at.max()) + 512) // 512 * 512
    image = np.full((len(matrix), size), 0x7FFF, np.uint16)
    image[:, at] = matrix
    return image.view(np.uint32), leading, stride


def wgmma(
    kind: str, columns: int, a_major: str, b_major: str, swizzle: int, values: Values, seeds: range
) -> list[Launch]:
    a, b, c = operands(values, seeds, kind, (64, 16), (16, columns), (64, columns), True)
    a_image, *a_strides = image_of(bits(a, kind), a_major == "MN", swizzle)
    b_image, *b_strides = image_of(bits(b.swapaxes(1, 2), kind), b_major == "MN", swizzle)
    (ra, ka), (rd, cd) = layouts.wgmma_a(), layouts.wgmma_accumulator(columns)
    arrays = a_image, b_image, fragments(a[:, ra, ka], kind), np.ascontiguousarray(c[:, rd, cd])
    args = (
        *(Buffer(0), a_image.shape[1], *a_strides),
        *(Buffer(1), b_image.shape[1], *b_strides),
        *(swizzle, Buffer(2), Buffer(3)),
    )
    exact = product(values, a, b, c)
    expected = _answers(None if exact is None else exact[:, rd, cd])
    return [Launch((len(seeds),), (128,), 65536, arrays, args, (3,), expected)]


_NUMPY: dict[Element, Any] = {
    "u8": np.uint8,
    "u16": np.uint16,
    "u32": np.uint32,
    "f16": np.float16,
    "bf16": np.uint16,
    "f32": np.float32,
}
# Box and tensor by rank, outermost first, for elements of four bytes; the innermost sides are in 16-byte chunks.
_BOXES = {1: (8,), 2: (16, 8), 3: (2, 8, 8), 4: (2, 3, 4, 8), 5: (2, 2, 2, 4, 8)}
_TENSORS = {1: (24,), 2: (40, 16), 3: (5, 24, 16), 4: (3, 5, 12, 16), 5: (2, 3, 5, 8, 16)}


def copy_box(rank: int, element: Element, swizzle: Swizzle, seeds: range) -> list[Launch]:
    """Boxes that start anywhere, also outside of the tensor; the additions are of integers.

    Along the innermost dimension a box starts at a multiple of 16 bytes: elsewhere a Hopper GPU ends in
    cudaErrorIllegalInstruction (and the emulator says why).
    """
    dtype = np.dtype(_NUMPY[element])
    chunk = 16 // dtype.itemsize
    shape = (*_TENSORS[rank][:-1], _TENSORS[rank][-1] * chunk)
    box = (*_BOXES[rank][:-1], (swizzle // 16 if swizzle else _BOXES[rank][-1]) * chunk)
    one = bf16_bits(np.ones(1))[0] if element == "bf16" else 1
    maps = tuple(Maps(i, box, element, swizzle) for i in range(3))
    made = []
    for seed in seeds:
        rng = np.random.default_rng(seed)
        start = [int(rng.integers(-(side // 2), n - side // 2 + 1)) for n, side in zip(shape, box, strict=True)]
        start[-1] = start[-1] // chunk * chunk
        whole = rng.integers(1, 128, shape)
        source = bf16_bits(whole) if element == "bf16" else whole.astype(dtype)
        image = np.zeros(math.prod(box), dtype)
        arrays = source, np.zeros_like(source), np.full_like(source, one), np.array(start[::-1], np.int32), image
        args = (*maps, Buffer(3), Buffer(4), image.nbytes // 4)
        made.append(Launch((1,), (32,), 32776, arrays, args, (1, 2, 4)))
    return made


def copy_bytes(seeds: range) -> list[Launch]:
    given = np.stack([np.random.default_rng(s).integers(0, 1 << 32, 2048).astype(np.uint32) for s in seeds])
    args = (Buffer(0), Buffer(1), 2048)
    return [Launch((len(seeds),), (32,), 32776, (given, np.zeros_like(given)), args, (1,), (given,))]


def move_words(seeds: range) -> list[Launch]:
    given = np.stack([np.random.default_rng(s).integers(0, 1 << 32, (128, 4)).astype(np.uint32) for s in seeds])
    found = np.zeros((len(seeds), 7, 128, 4), np.uint32)
    return [Launch((len(seeds),), (128,), 7 * 2048, (given, found), (Buffer(0), Buffer(1)), (1,))]


def arithmetic(output: int, seeds: range) -> list[Launch]:
    rngs = [np.random.default_rng(seed) for seed in seeds]
    # Over 2^-20 to 2^20 for the exact ones, so that roundings of every kind occur; ex2 has its own range.
    scale = 8.0 if output == 4 else 1.0
    x, y, z = (
        np.stack([rng.standard_normal(128) * (scale if output == 4 else 2.0 ** rng.integers(-12, 13)) for rng in rngs])
        for _ in range(3)
    )
    floats = [each.astype(np.float32) for each in (x, y, z)]
    arrays: tuple[Array, ...] = (*floats, *np.zeros((4, len(seeds), 128), np.float32))
    words: tuple[Array, ...] = tuple(each.view(np.uint32) if i > 4 else each for i, each in enumerate(arrays))
    return [Launch((len(seeds),), (128,), 0, words, tuple(map(Buffer, range(7))), (output,))]


def gemm_sm70(a_order: str, b_order: str, f16: bool, seeds: range) -> list[Launch]:
    made = []
    for seed in seeds:
        rng = np.random.default_rng(seed)
        top = 3 if f16 else 64
        a, b = (rng.integers(-top, top + 1, shape).astype(np.float16) for shape in ((32, 48), (48, 64)))
        stored = [np.ascontiguousarray(m if o == "row" else m.T) for m, o in ((a, a_order), (b, b_order))]
        arrays: tuple[Array, ...] = (*stored, np.zeros((32, 64), np.float32))
        exact = a.astype(np.float32) @ b.astype(np.float32)
        # With f16 sums the kernel writes the bits of each f16 as a number.
        expected = exact.astype(np.float16).view(np.uint16).astype(np.float32) if f16 else exact
        args = (Buffer(0), Buffer(1), Buffer(2), 32, 64, 48, 0)
        made.append(Launch((1, 2), (128,), 512, arrays, args, (2,), () if f16 else (expected,)))
    return made


def attention(arch: str, seeds: range) -> list[Launch]:
    made = []
    for seed in seeds:
        case = attention_case(128, seed)
        arrays = case.q, case.k, case.v, np.zeros((128, 64), np.float32)
        args: tuple[Buffer | Maps | int | float, ...] = tuple(map(Buffer, range(4)))
        smem_bytes, threads = 5 * 8192, 128
        if arch == "sm90a":
            inputs = (Maps(i, (64, 64), "bf16", 128) for i in range(3))
            args, threads = (*inputs, Maps(3, (64, 64), "f32", 0)), 256
            smem_bytes += 64 * 64 * 4 + 40
        args = (*args, 128, float(SCALE_LOG2), 0)
        expected = (case.expected.astype(np.float32),)
        made.append(Launch((2,), (threads,), smem_bytes, arrays, args, (3,), expected))
    return made


@cache
def cases() -> tuple[Case, ...]:
    """All of them, in the order of the report."""
    orders, numbers = tuple(itertools.product(("row", "col"), repeat=2)), (("integers", 0.0), ("normal", F32_TOLERANCE))
    made: list[Case] = []
    for f32, (a, b), values in itertools.product((True, False), orders, ("integers", "normal")):
        name = f"mma_m8n8k4<ptx::Order::{a},ptx::Order::{b}>"
        kind = ("float", 8) if f32 else ("unsigned", 4)
        defines = ("MMA", name), ("D_TYPE", kind[0]), ("D_WORDS", kind[1]), ("A_WORDS", 2), ("B_WORDS", 2)
        off = 0.0 if values == "integers" else F32_TOLERANCE if f32 else F16_TOLERANCE
        layout = f"{a}.{b} {'f32' if f32 else 'f16'} sums"
        made.append(Case("mma_m8n8k4", layout, values, "mma", defines, partial(volta, a, b, f32, values), off))  # type: ignore[arg-type]
    for (k, kind_), (values, off) in itertools.product(
        ((16, "f16"), (16, "bf16"), (8, "f16"), (8, "bf16"), (8, "tf32")), numbers
    ):
        name, wide = f"mma_m16n8k{k}_{kind_}", kind_ == "tf32"
        words = 16 * k // 32 // (1 if wide else 2), 8 * k // 32 // (1 if wide else 2)
        defines = ("MMA", name), ("D_TYPE", "float"), ("D_WORDS", 4), ("A_WORDS", words[0]), ("B_WORDS", words[1])
        made.append(Case(name, "row.col", values, "mma", defines, partial(mma_sync, kind_, k, values), off))  # type: ignore[arg-type]
    for n in (1, 2, 4):
        for kernel, function, name in (
            ("load_matrices", load_matrices, "ldmatrix"),
            ("store_matrices", store_matrices, "stmatrix"),
        ):
            made.append(Case(name, f"x{n} and trans", "bits", kernel, (("MATRICES", n),), partial(function, n)))
    made.append(Case("cp_async, memory, barrier", "4, 8, 16 bytes", "bits", "move_words", (("WAYS", 1),), move_words))
    for name, output, off in (("ffma", 3, 0.0), ("ex2", 4, EX2_TOLERANCE), ("pack_f16", 5, 0.0), ("pack_bf16", 6, 0.0)):
        made.append(
            Case(name, "", "normal", "arithmetic", (("ARITHMETIC", 1),), partial(arithmetic, output), tolerance=off)
        )
    made.append(Case("bulk copy, mbarrier", "8192 bytes", "bits", "copy_bytes", (("BYTES", 1),), copy_bytes))
    made += _tensor_copies()
    made += _wgmmas(numbers)
    for (a, b), f16 in itertools.product(orders, (False, True)):
        defines = ("ORDER_A", a), ("ORDER_B", b), *((("F16_SUMS", 1),) if f16 else ())
        layout, run = f"{a}.{b} {'f16' if f16 else 'f32'} sums", partial(gemm_sm70, a, b, f16)
        file = EMULATED / "gemm_sm70.cu"
        made.append(Case("gemm_sm70", layout, "integers", "gemm_sm70", defines, run, source=file))
    for arch in ("sm80", "sm90a"):
        name = f"attention_{arch}"
        file = EMULATED / f"{name}.cu"
        made.append(Case(name, "", "normal", name, (), partial(attention, arch), ATTENTION_TOLERANCE, file))
    assert len({case.key for case in made}) == len(made)
    return tuple(made)


def _tensor_copies() -> list[Case]:
    made = []
    spans: tuple[Swizzle, ...] = (0, 32, 64, 128)
    ranks = [(rank, "f32", span) for rank, span in itertools.product(range(1, 6), spans)]
    elements = [(2, element, span) for element in _NUMPY if element != "f32" for span in (0, 128)]
    for rank, element, span in [*ranks, *elements]:
        # Additions of 8 and 16 bits are none of the instruction's.
        defines = ("RANK", rank), ("ADDS", int(element not in ("u8", "u16")))
        name = "tensor_load, tensor_store" + (", tensor_add" if defines[1][1] else "")
        run = partial(copy_box, rank, element, span)  # type: ignore[arg-type]
        made.append(Case(name, f"{rank}D {element} swizzle {span}", "integers", "copy_box", defines, run))
    return made


def _wgmmas(numbers: tuple[tuple[str, float], ...]) -> list[Case]:
    made = []
    shapes = itertools.product(("ss", "rs"), ("f16", "bf16"), (8, 16, 32, 64, 96, 128, 192, 256), (0, 32, 64, 128))
    for source, kind, n, span in shapes:
        for a, b in itertools.product(("K", "MN") if source == "ss" else ("K",), ("K", "MN")):
            if b == "MN" and span and n % (span // 2):
                continue  # an MN-major tile is made of whole spans
            name = f"wgmma_{kind}_{source}"
            defines = ("COLUMNS", n), ("WGMMA", name), ("A_MAJOR", a), ("B_MAJOR", b)
            if source == "rs":
                defines = (*defines[:2], ("B_MAJOR", b), ("FROM_REGISTERS", 1))  # type: ignore[assignment]
            layout = f"n{n} {a if source == 'ss' else 'registers'}.{b} swizzle {span}"
            for values, off in numbers:
                run = partial(wgmma, kind, n, a, b, span, values)  # type: ignore[arg-type]
                made.append(Case(name, layout, values, "wgmma", defines, run, off))  # type: ignore[arg-type]
    return made
