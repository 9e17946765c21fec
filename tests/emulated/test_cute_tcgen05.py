"""tcgen05 against what nobody here wrote: descriptors and places in tensor memory, as the CuTe headers compute them."""

import itertools
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from microbench.emulator import EmulatedDevice
from microbench.shapes.tcgen05_operands import scale_tiles
from microbench.verify.differential.lanes import Move, lanes_of_rows, registers
from microbench.verify.differential.number_formats import bits_of
from microbench.verify.differential.scaled import SCALED_FORMS, ScaledOperand
from tests.emulated.test_cute import Indices, cute_says
from tests.emulated.test_tcgen05 import COPIES, MOVES, SMEM_BYTES, load

pytestmark = pytest.mark.slow

SOURCE = Path(__file__).with_name("tcgen05_of_cute.cpp")
ELEMENTS = {"mxf8": "e4m3", "mxf4": "e2m1", "nvf4": "e2m1"}


@pytest.fixture(scope="session")
def cute(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Indices]:
    """What CuTe prints, by name."""
    return cute_says(SOURCE, tmp_path_factory.mktemp("cute_tcgen05"))


def described(types: tuple[str, str], majors: tuple[str, str], m: int, n: int, *matrix: int) -> NDArray[np.uint64]:
    """(instruction descriptor, matrix descriptor) as the header builds them."""
    made = np.zeros(2, np.uint64)
    defines = {"DESCRIBE": 1, "A_TYPE": types[0], "B_TYPE": types[1], "A_MAJOR": majors[0], "B_MAJOR": majors[1]}
    load(EmulatedDevice(), "describe", **defines)((1,), (1,), (made, m, n, *matrix))  # type: ignore[arg-type]
    return made


def test_instruction_descriptors_are_those_of_cute(cute: dict[str, Indices]) -> None:
    names = [name for name in cute if name.startswith("instruction.")]
    assert len(names) == 24
    for name in names:
        _, a, b, m, n, a_major, b_major = name.split(".")
        assert described((a, b), (a_major, b_major), int(m), int(n), 16, 16, 0)[0] == cute[name][0], name


def test_scaled_instruction_descriptors_are_those_of_cute(cute: dict[str, Indices]) -> None:
    names = [name for name in cute if name.startswith("scaled.")]
    assert len(names) == 4
    for name in names:
        _, kind, scale, m, n = name.split(".")
        made = np.zeros(2, np.uint64)
        types = {"A_TYPE": ELEMENTS[kind], "B_TYPE": ELEMENTS[kind], "SCALE": scale}
        defines = {"DESCRIBE": 1, "A_MAJOR": "K", "B_MAJOR": "K", **types}
        load(EmulatedDevice(), "describe", **defines)((1,), (1,), (made, int(m), int(n), 16, 16, 0))
        assert made[0] == cute[name][0], name


def test_factors_lie_where_cute_says(cute: dict[str, Indices]) -> None:
    names = [name for name in cute if name.startswith("factors.") and ".pair_" not in name]
    assert len(names) == 3
    for name in names:
        _, kind, _, rows = name.split(".")
        form = next(form for form in SCALED_FORMS if form.kind == kind)
        factors = form.depth // form.per_scale
        numbers = np.arange(int(rows) * factors).reshape(int(rows), factors) % 119 + 1
        operand = ScaledOperand(np.zeros(0, np.uint8), numbers.astype(np.uint8), np.zeros(0))
        tiles = operand.columns(int(rows) // 32, 0, np.random.default_rng(1))
        lanes = tiles.swapaxes(0, 1).reshape(32, -1)  # bytes of a lane, from the first column on
        # A lane is 65536 columns of 32 bits away from the next one.
        lane, byte = np.divmod(cute[name], 65536 * 4)
        np.testing.assert_array_equal(lanes[lane, byte], numbers.ravel())


def test_factors_of_64_rows_in_each_block_of_a_pair_lie_where_cute_says(cute: dict[str, Indices]) -> None:
    a, b = (np.arange(rows * 4).reshape(rows, 4) % 119 + 1 for rows in (128, 192))
    tiles = scale_tiles(a.astype(np.uint8), b.astype(np.uint8), 2)[0]  # of the first block
    # As the copies bring them: A to every quarter of the lanes, B's tiles to the lower and to the upper two.
    memory = np.concatenate([np.tile(tiles[0], (4, 1)), np.repeat(tiles[1:], 2, axis=0).reshape(128, 16)], axis=1)
    for name, first, factors in (("pair_a.64", 0, a[:64]), ("pair_b.192", 16, b)):
        lane, byte = np.divmod(cute[f"factors.nvf4.{name}"], 65536 * 4)
        np.testing.assert_array_equal(memory[lane, first + byte], factors.ravel())
    assert lane.reshape(2, -1).min(axis=1).tolist() == [0, 64]


TILES = list(itertools.product((8, 16), ("K", "MN"), (0, 32, 64, 128)))


@pytest.mark.parametrize(("width", "major", "swizzle"), TILES)
def test_matrix_descriptors_are_those_of_cute(cute: dict[str, Indices], width: int, major: str, swizzle: int) -> None:
    word = int(cute[f"tile.{width}.{major}.{swizzle}"][0].astype(np.uint64))
    leading, stride = (word >> 16 & 0x3FFF) << 4, (word >> 32 & 0x3FFF) << 4
    assert int(described(("f16", "f16"), ("K", "K"), 128, 128, leading, stride, swizzle)[1]) == word


@pytest.mark.parametrize(("width", "major", "swizzle"), TILES)
def test_a_product_reads_cutes_tiles(cute: dict[str, Indices], width: int, major: str, swizzle: int) -> None:
    word, *places = cute[f"tile.{width}.{major}.{swizzle}"]
    rng = np.random.default_rng(width + swizzle)
    a, b = (rng.integers(-4, 5, (64, 256 // width)).astype(np.float32) for _ in range(2))
    kind = "e4m3" if width == 8 else "f16"
    operands: list[object] = []
    for bits in (bits_of(a, kind), bits_of(b, kind)):  # type: ignore[arg-type]
        image = np.full(16384 * 8 // width, 0x7F if width == 8 else 0x7FFF, bits.dtype)
        image[np.array(places) * 8 // width] = bits.ravel()
        fields = (int(np.uint64(word)) >> shift & 0x3FFF for shift in (16, 32))
        operands += [image.view(np.uint32), 4096, *(field << 4 for field in fields)]
    d = np.zeros((128, 64), np.float32)
    defines = {"KIND": "f8" if width == 8 else "f16", "A_TYPE": kind, "B_TYPE": kind, "M": 64, "N": 64, "SUM": "f32"}
    defines |= {"SWIZZLE": swizzle, "A_MAJOR": major, "B_MAJOR": major, "FROM_TENSOR_MEMORY": 0}
    kernel = load(EmulatedDevice(), "product", **defines)  # type: ignore[arg-type]
    kernel((1,), (128,), (*operands, np.zeros(1, np.uint32), d.view(np.uint32), 0), shared_mem=SMEM_BYTES)
    np.testing.assert_array_equal(d[lanes_of_rows(64)], a @ b.T)


@pytest.mark.parametrize(("name", "m", "n"), [("d", 64, 16), ("d", 128, 16), ("a16", 64, 16), ("a16", 128, 16)])
def test_rows_lie_in_the_lanes_of_cute(cute: dict[str, Indices], name: str, m: int, n: int) -> None:
    lane, column = cute[f"operand.{name}.{m}"].reshape(m, n, 2).transpose(2, 0, 1)
    np.testing.assert_array_equal(lane, np.tile(lanes_of_rows(m)[:, None], n))
    np.testing.assert_array_equal(column, np.tile(np.arange(n), (m, 1)))


@pytest.mark.parametrize("rows", [64, 128])
def test_a_pair_folds_64_rows_as_cute_does(cute: dict[str, Indices], rows: int) -> None:
    """What gemm_pair_sm100a.cu takes out: lanes from 64 on hold the second half of the columns."""
    lane, column = cute[f"operand.pair_d.{rows}"].reshape(rows, 32, 2).transpose(2, 0, 1)
    row, n = np.indices((rows, 32))
    half = 16 if rows == 64 else 32
    np.testing.assert_array_equal(lane, row + n // half * 64)
    np.testing.assert_array_equal(column, n % half)


def test_registers_are_loaded_from_where_cute_says(cute: dict[str, Indices]) -> None:
    names = [name for name in cute if name.startswith("load.")]
    assert len(names) == 10
    for name in names:
        _, shape, count = name.split(".")
        lane, column = cute[name].reshape(32, int(count), 2).transpose(2, 0, 1)
        move = Move(shape, int(count))  # type: ignore[arg-type]
        np.testing.assert_array_equal((lane, column), registers(move), err_msg=name)
        assert column.max() + 1 == move.columns
        assert any(tried.shape == shape for tried, _ in MOVES)  # the emulator is tested on what `registers` says


@pytest.mark.parametrize("wrapper", COPIES)
def test_copies_bring_rows_to_the_lanes_of_cute(cute: dict[str, Indices], wrapper: str) -> None:
    row_bytes, row_of_lane = COPIES[wrapper]
    row, word, lane, column = cute[f"copy.{wrapper}"].reshape(-1, 4).T
    assert len(row) == 128 * row_bytes // 4
    np.testing.assert_array_equal(row, row_of_lane[lane])
    np.testing.assert_array_equal(word, column)
