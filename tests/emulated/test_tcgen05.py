"""Every tcgen05 wrapper by itself: small integers come out exactly, and where the PTX ISA's tables say."""

from typing import Any

import numpy as np
import pytest

from microbench.emulator import MODES, EmulatedDevice, Mode
from microbench.verify.differential.lanes import SHAPES, Kind, Move, lanes_of_rows, registers
from microbench.verify.differential.layouts import image_of
from microbench.verify.differential.number_formats import BYTES, bits_of
from tests.emulated.sources import source_of

SOURCE, NAME = source_of("tcgen05.cu")
SMEM_BYTES = 2 * 65536 + 16
MOVES = [
    (Move(shape, count, apart), lane)
    for shape, least in SHAPES.items()
    for count in (1, 2, 4, 8, 32, 128)
    for apart in ((0, 5) if shape == "16x32bx2" else (0,))
    for lane in (0, 16)
    if count >= least and (shape != "32x32b" or lane == 0)
]


def load(device: EmulatedDevice, kernel: str, **defines: int | str) -> Any:
    return device.load(SOURCE, NAME, kernel=kernel, defines=tuple(defines.items()))


@pytest.mark.parametrize(("move", "lane"), MOVES)
def test_a_warp_moves_the_words_that_the_shape_names(move: Move, lane: int) -> None:
    columns, count = move.columns, move.count
    image = np.random.default_rng(count).integers(0, 2**32, (128, columns), np.uint32)
    loaded, stored = np.zeros((128, count), np.uint32), np.zeros((128, columns), np.uint32)
    kernel = load(EmulatedDevice(), "move", SHAPE=move.wrapper, COUNT=count)
    kernel((1,), (128,), (image, columns, lane, loaded, stored), shared_mem=16)
    lanes, places = registers(move)
    rows = np.concatenate([lanes + 32 * warp + lane for warp in range(4)])
    at = rows, np.tile(places, (4, 1))
    np.testing.assert_array_equal(loaded, image[at])
    image[at] = ~image[at]
    np.testing.assert_array_equal(stored, image)


MAJORS = [(128, 64, swizzle, a, b) for swizzle in (0, 32, 64, 128) for a in ("K", "MN") for b in ("K", "MN")]
SIZES = [(m, n, 128, "K", "K") for m in (64, 128) for n in (8, 16, 96, 128, 256) if m == 64 or n > 8]
TYPES: list[tuple[Kind, Kind]] = [("f16", "f16"), ("bf16", "bf16"), ("e4m3", "e4m3"), ("e5m2", "e4m3")]
WITHIN_A_KIND: dict[Kind, str] = {"f16": "f16", "bf16": "f16", "e4m3": "f8", "e5m2": "f8", "tf32": "tf32"}


def product(mode: Mode, kinds: tuple[Kind, Kind], shape: tuple[int, int, int, str, str], source: str) -> None:
    """d of one instruction against NumPy, with and without the sums from before."""
    m, n, swizzle, a_major, b_major = shape
    name = WITHIN_A_KIND.get(kinds[0], "i8")
    depth, signed = 32 // BYTES[kinds[0]], "u8" not in kinds
    rng = np.random.default_rng(m + n + swizzle)
    a, b = (rng.integers(-4 if signed else 0, 5, (side, depth)).astype(np.float32) for side in (m, n))
    a_bits, b_bits = (bits_of(each, kind) for each, kind in zip((a, b), kinds, strict=True))
    packed = np.ascontiguousarray(a_bits).view(np.uint32)
    in_lanes = np.zeros((128, 8), np.uint32)
    in_lanes[lanes_of_rows(m)] = packed
    a_image = (in_lanes, 16, 16) if source == "ts" else image_of(a_bits, a_major == "MN", swizzle)
    b_image = image_of(b_bits, b_major == "MN", swizzle)
    defines = {"KIND": name, "A_TYPE": kinds[0], "B_TYPE": kinds[1], "M": m, "N": n}
    defines |= {"SWIZZLE": swizzle, "A_MAJOR": a_major, "B_MAJOR": b_major, "FROM_TENSOR_MEMORY": int(source == "ts")}
    defines["SUM"] = "s32" if name == "i8" else "f32"
    kernel = load(EmulatedDevice(mode), "product", **defines)
    for accumulate in (0, 1):
        before = rng.integers(-4, 5, (128, n)).astype(np.int32 if name == "i8" else np.float32)
        d = before.copy()
        operands = (x for image in (a_image, b_image) for x in (image[0], image[0].size, *image[1:]))
        kernel((1,), (128,), (*operands, np.zeros(1, np.uint32), d.view(np.uint32), accumulate), shared_mem=SMEM_BYTES)
        lanes = lanes_of_rows(m)
        expected = before.copy()
        expected[lanes] = a @ b.T + accumulate * before[lanes]
        np.testing.assert_array_equal(d, expected)


@pytest.mark.parametrize("shape", [*MAJORS, *SIZES])
def test_a_product_reads_what_its_descriptors_say(shape: tuple[int, int, int, str, str]) -> None:
    product("lazy", ("bf16", "bf16"), shape, "ss")


@pytest.mark.parametrize("kinds", [("tf32", "tf32"), ("s8", "s8"), ("u8", "u8"), ("s8", "u8")])
@pytest.mark.parametrize("m", [64, 128])
@pytest.mark.parametrize("source", ["ss", "ts"])
def test_a_product_takes_tf32_and_integers(kinds: tuple[Kind, Kind], m: int, source: str) -> None:
    product("random", kinds, (m, 32, 128, "K", "K"), source)


@pytest.mark.parametrize("kinds", TYPES)
@pytest.mark.parametrize("b_major", ["K", "MN"])
@pytest.mark.parametrize("m", [64, 128])
@pytest.mark.parametrize("source", ["ss", "ts"])
def test_a_product_takes_every_type(kinds: tuple[Kind, Kind], b_major: str, m: int, source: str) -> None:
    product("random", kinds, (m, 32, 64, "K", b_major), source)


COPIES = {  # bytes of a row, and the row of each lane
    "tcgen05_cp_128x256b": (32, np.arange(128)),
    "tcgen05_cp_128x128b": (16, np.arange(128)),
    "tcgen05_cp_64x128b_02_13": (16, np.arange(128) % 64),
    "tcgen05_cp_64x128b_01_23": (16, np.arange(128) // 64 * 32 + np.arange(128) % 32),
    "tcgen05_cp_32x128b": (16, np.arange(128) % 32),
}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("wrapper", COPIES)
def test_a_copy_brings_rows_to_lanes(wrapper: str, mode: Mode) -> None:
    row_bytes, row_of_lane = COPIES[wrapper]
    rows = np.random.default_rng(row_bytes).integers(0, 2**16, (row_of_lane.max() + 1, row_bytes // 2), np.uint16)
    swizzle = 0 if row_bytes == 16 else 32
    image, leading, stride = image_of(rows, False, swizzle)
    shown = np.zeros((128, row_bytes // 4), np.uint32)
    kernel = load(EmulatedDevice(mode), "copy", COPY=wrapper, SWIZZLE=swizzle)
    kernel((1,), (128,), (image, image.size, leading, stride, shown, row_bytes // 4), shared_mem=SMEM_BYTES)
    np.testing.assert_array_equal(shown, rows.view(np.uint32)[row_of_lane])
