"""tcgen05: what loads and stores of tensor memory move, what one product makes, and where copies bring rows.

Small integers, of which every sum is exact in any order, so that what differs is a layout, a descriptor or a type.
"""

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import numpy as np

from microbench.verify.differential.case import Array, Buffer, Case, Defines, Launch
from microbench.verify.differential.lanes import SHAPES, Kind, Move, lanes_of_rows, registers
from microbench.verify.differential.layouts import image_of
from microbench.verify.differential.number_formats import BYTES, PADDED, bits_of, padded
from microbench.verify.differential.scaled import SCALE_BYTES, SCALED_FORMS, ScaledForm

SOURCE = Path(__file__).with_name("tcgen05.cu")
SMEM_BYTES = 2 * 65536 + 128 + SCALE_BYTES
# A block allocates all of tensor memory, so that a launch has one seed; on the emulator it takes as long as these many
# seeds of other wrappers.
SEEDS_A_LAUNCH = 20
THREADS = 128

KIND_OF: dict[str, str] = {"f16": "f16", "bf16": "f16", "e4m3": "f8", "e5m2": "f8", "tf32": "tf32"}
KIND_OF |= dict.fromkeys(PADDED, "f8")
TYPES: tuple[tuple[Kind, Kind], ...] = (
    *(("f16", "f16"), ("bf16", "bf16"), ("e4m3", "e4m3"), ("e5m2", "e4m3")),
    *(("tf32", "tf32"), ("s8", "s8"), ("u8", "u8"), ("s8", "u8")),
)
# Of 6 or 4 bits, by themselves and beside another width.
NARROW: tuple[tuple[Kind, Kind], ...] = (
    *(("e2m3", "e2m3"), ("e3m2", "e3m2"), ("padded_e2m1", "padded_e2m1")),
    *(("e2m3", "e4m3"), ("e5m2", "e3m2"), ("padded_e2m1", "e3m2")),
)
SIZES = ((64, 8), (64, 96), (128, 16), (128, 256))
# Bytes of a row, and the row that each lane gets.
COPIES: dict[str, tuple[int, Array]] = {
    "tcgen05_cp_128x256b": (32, np.arange(128)),
    "tcgen05_cp_128x128b": (16, np.arange(128)),
    "tcgen05_cp_64x128b_02_13": (16, np.arange(128) % 64),
    "tcgen05_cp_64x128b_01_23": (16, np.arange(128) // 64 * 32 + np.arange(128) % 32),
    "tcgen05_cp_32x128b": (16, np.arange(128) % 32),
}


def move(form: Move, lane: int, seeds: range) -> list[Launch]:
    """Registers of each thread, loaded from a known image; their complements stored in the same place."""
    lanes, places = registers(form)
    at = np.concatenate([lanes + 32 * warp + lane for warp in range(4)]), np.tile(places, (4, 1))
    made = []
    for rng in _draws(seeds):
        image = rng.integers(0, 2**32, (THREADS, form.columns), np.uint32)
        stored = image.copy()
        stored[at] = ~image[at]
        arrays = image, np.zeros((THREADS, form.count), np.uint32), np.zeros_like(image)
        args = (Buffer(0), form.columns, lane, Buffer(1), Buffer(2))
        made.append(Launch((1,), (THREADS,), 16, arrays, args, (1, 2), (image[at], stored)))
    return made


def product(kinds: tuple[Kind, Kind], m: int, n: int, form: tuple[str, str, int, str], seeds: range) -> list[Launch]:
    """D of one instruction, the sums from before kept in every second launch; `form` is as in `_product`."""
    a_major, b_major, swizzle, source = form
    depth, least = 32 // BYTES[kinds[0]], 0 if "u8" in kinds else -4
    lanes, sums = lanes_of_rows(m), np.int32 if _kind(kinds) == "i8" else np.float32
    made = []
    for number, rng in enumerate(_draws(seeds)):
        a, b = (rng.integers(least, 5, (side, depth)).astype(np.float32) for side in (m, n))
        a_bits, b_bits = (_in_memory(each, kind, rng) for each, kind in zip((a, b), kinds, strict=True))
        before = rng.integers(-4, 5, (THREADS, n)).astype(sums)
        after = before.copy()
        after[lanes] = a @ b.T + number % 2 * before[lanes]
        in_lanes = np.zeros((THREADS, 8), np.uint32)
        in_lanes[lanes] = np.ascontiguousarray(a_bits).view(np.uint32)
        images = (
            (in_lanes, 16, 16) if source == "ts" else image_of(a_bits, a_major == "MN", swizzle),
            image_of(b_bits, b_major == "MN", swizzle),
        )
        args: list[Buffer | int] = []
        for index, (image, leading, stride) in enumerate(images):
            args += [Buffer(index), _words(image).size, leading, stride]
        arrays = *(_words(image) for image, _, _ in images), before
        args += [Buffer(0), Buffer(2), number % 2]  # no scales: whatever is given is not read
        made.append(Launch((1,), (THREADS,), SMEM_BYTES, arrays, tuple(args), (2,), (after,)))
    return made


def copy(wrapper: str, swizzle: int, seeds: range) -> list[Launch]:
    """Rows of shared memory, and the lanes that have them afterwards."""
    row_bytes, row_of_lane = COPIES[wrapper]
    made = []
    for rng in _draws(seeds):
        rows = rng.integers(0, 2**16, (int(row_of_lane.max()) + 1, row_bytes // 2), np.uint16)
        image, leading, stride = image_of(rows, False, swizzle)
        words, shown = _words(image), np.zeros((THREADS, row_bytes // 4), np.uint32)
        args = (Buffer(0), words.size, leading, stride, Buffer(1), row_bytes // 4)
        expected = (rows.view(np.uint32)[row_of_lane],)
        made.append(Launch((1,), (THREADS,), SMEM_BYTES, (words, shown), args, (1,), expected))
    return made


def cases() -> list[Case]:
    """Every shape of a load, every type, swizzle and major of a product, every copy, every block-scaled kind."""
    return [*_moves(), *_products(), *_copies(), *_scaled_products()]


def _moves() -> Iterator[Case]:
    for shape, least in SHAPES.items():
        for count in sorted({least, 8, 32}):
            for apart in (0, 3) if shape == "16x32bx2" else (0,):
                for lane in (0,) if shape == "32x32b" else (0, 16):
                    yield _move(Move(shape, count, apart), lane)


def _move(form: Move, lane: int) -> Case:
    name, layout = f"tcgen05_ld_{form.shape}, tcgen05_st_{form.shape}", f"x{form.count} from lane {lane}"
    if form.shape == "16x32bx2":
        layout += f", halves {form.split} columns apart"
    defines: Defines = (("SHAPE", form.wrapper), ("COUNT", form.count))
    return Case(name, layout, "bits", "move", defines, partial(move, form, lane), source=SOURCE)


def _products() -> Iterator[Case]:
    bf16: tuple[Kind, Kind] = ("bf16", "bf16")
    for swizzle in (0, 32, 64, 128):
        for a, b in (("K", "K"), ("K", "MN"), ("MN", "K"), ("MN", "MN")):
            yield _product(bf16, 128, 64, (a, b, swizzle, "ss"))
    for m, n in SIZES:
        yield _product(bf16, m, n, ("K", "K", 128, "ss"))
    for kinds in TYPES:
        for source in ("ss", "ts"):
            yield _product(kinds, 128, 32, ("K", "K", 128, source))
    for kinds in NARROW:
        for m, swizzle in ((128, 128), (64, 0)):
            yield _product(kinds, m, 32, ("K", "K", swizzle, "ss"))


def _product(kinds: tuple[Kind, Kind], m: int, n: int, form: tuple[str, str, int, str]) -> Case:
    """`form`: the majors of a and b, the swizzle of both, and whether a lies in shared ('ss') or tensor memory."""
    a, b, swizzle, source = form
    kind = _kind(kinds)
    defines: Defines = (
        *(("KIND", kind), ("A_TYPE", kinds[0]), ("B_TYPE", kinds[1]), ("M", m), ("N", n), ("SWIZZLE", swizzle)),
        *(("A_MAJOR", a), ("B_MAJOR", b), ("FROM_TENSOR_MEMORY", int(source == "ts"))),
        ("SUM", "s32" if kind == "i8" else "f32"),
    )
    layout = f"{kinds[0]}.{kinds[1]} m{m} n{n} {a}.{b} swizzle {swizzle}"
    run = partial(product, kinds, m, n, form)
    return Case(f"tcgen05_mma_{kind}_{source}", layout, "integers", "product", defines, run, source=SOURCE)


def _copies() -> Iterator[Case]:
    for wrapper, (row_bytes, _) in COPIES.items():
        swizzle = 0 if row_bytes == 16 else 32
        defines: Defines = (("COPY", wrapper), ("SWIZZLE", swizzle))
        run = partial(copy, wrapper, swizzle)
        yield Case(wrapper, f"swizzle {swizzle}", "bits", "copy", defines, run, source=SOURCE)


def scaled_product(form: ScaledForm, m: int, n: int, layout: tuple[str, str, int, str], seeds: range) -> list[Launch]:
    """The same of a kind whose neighbours in k share a factor; `layout` is as the form of `_product`."""
    a_major, b_major, swizzle, source = layout
    made = []
    for number, rng in enumerate(_draws(seeds)):
        a, b = form.operand(rng, m), form.operand(rng, n)
        before = rng.integers(-4, 5, (THREADS, n)).astype(np.float32)
        after = (a.scaled @ b.scaled.T + number % 2 * before).astype(np.float32)
        images = (
            (a.bits, 16, 16) if source == "ts" else image_of(a.bits, a_major == "MN", swizzle),
            image_of(b.bits, b_major == "MN", swizzle),
        )
        args: list[Buffer | int] = []
        for index, (image, leading, stride) in enumerate(images):
            args += [Buffer(index), _words(image).size, leading, stride]
        scales = np.concatenate([a.columns(4, form.a_byte, rng), b.columns(8, form.b_byte, rng)])
        arrays = *(_words(image) for image, _, _ in images), _words(scales), before
        args += [Buffer(2), Buffer(3), number % 2]
        made.append(Launch((1,), (THREADS,), SMEM_BYTES, arrays, tuple(args), (3,), (after,)))
    return made


def _scaled_products() -> Iterator[Case]:
    for form in SCALED_FORMS:
        for n, layout in (
            (32, ("K", "K", 128, "ss")),
            (256, ("K", "K", 0, "ss")),
            (72, ("K", "K", 32, "ts")),
        ):
            if layout[3] == "ss" or form.elements not in PADDED:
                yield _scaled_product(form, n, layout)
        if form.elements == "e4m3":
            yield _scaled_product(form, 64, ("MN", "MN", 64, "ss"))


def _scaled_product(form: ScaledForm, n: int, layout: tuple[str, str, int, str]) -> Case:
    a, b, swizzle, source = layout
    defines: Defines = (
        *(("KIND", form.kind), ("A_TYPE", form.elements), ("B_TYPE", form.elements), ("M", 128), ("N", n)),
        *(("SWIZZLE", swizzle), ("A_MAJOR", a), ("B_MAJOR", b), ("FROM_TENSOR_MEMORY", int(source == "ts"))),
        *(("SCALE", form.scale), ("A_BYTE", form.a_byte), ("B_BYTE", form.b_byte)),
    )
    run = partial(scaled_product, form, 128, n, layout)
    text = f"{form.elements} by {form.scale} bytes {form.a_byte}.{form.b_byte} n{n} {a}.{b} swizzle {swizzle}"
    return Case(f"tcgen05_mma_{form.kind}_{source}", text, "integers", "product", defines, run, source=SOURCE)


def _in_memory(values: Array, kind: Kind, rng: np.random.Generator) -> Array:
    """The bits of the elements, padded where their kind pads them."""
    bits = bits_of(values, kind)
    return padded(bits, PADDED[kind], rng) if kind in PADDED else bits


def _kind(kinds: tuple[Kind, Kind]) -> str:
    return KIND_OF.get(kinds[0], "i8")


def _draws(seeds: range) -> Iterator[np.random.Generator]:
    return (np.random.default_rng(seed) for seed in seeds if seed % SEEDS_A_LAUNCH == 0)


def _words(image: Array) -> Array:
    return np.ascontiguousarray(image).reshape(-1).view(np.uint32)
