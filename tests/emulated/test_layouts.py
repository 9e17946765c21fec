"""The layouts found by experiment are those of the PTX ISA's tables; what kernels are built on holds for them."""

import itertools

import numpy as np
import pytest

from microbench import layouts
from microbench.compile import compile_source
from microbench.layouts import Fragment, Order
from microbench.verify.differential import layouts as tables

ORDERS: tuple[tuple[Order, Order], ...] = tuple(itertools.product(("row", "col"), repeat=2))


def holds(fragment: Fragment, places: tables.Places) -> None:
    """Element i of thread t is where the table says, for every (t, i)."""
    thread, element = np.indices(places[0].shape)
    np.testing.assert_array_equal(fragment.thread[places], thread)
    np.testing.assert_array_equal(fragment.element[places], element)


@pytest.mark.parametrize(("a_order", "b_order"), ORDERS)
def test_volta_has_four_products(a_order: Order, b_order: Order) -> None:
    found = layouts.volta(a_order, b_order)
    owner = tables.quad_pair()[:, 0]
    row, k = tables.volta_operand(a_order == "row")
    column, column_k = tables.volta_operand(b_order == "col")
    for number, pair in enumerate(found):
        mine = np.flatnonzero(owner == number)
        for fragment, places in (
            (pair.a, (row, k)),
            (pair.b, (column_k, column)),
            (pair.d, tables.volta_accumulator(True)),
        ):
            thread, element = np.broadcast_arrays(mine[:, None], np.arange(places[0].shape[1]))
            np.testing.assert_array_equal(fragment.thread[places[0][mine], places[1][mine]], thread)
            np.testing.assert_array_equal(fragment.element[places[0][mine], places[1][mine]], element)
    assert len(found) == 4 and sum(pair.flops for pair in found) == 4 * 2 * 8 * 8 * 4


def test_ampere_has_one() -> None:
    (found,) = layouts.ampere()
    holds(found.a, tables.mma_a(16))
    holds(found.b, tables.mma_b(16))
    holds(found.d, tables.mma_accumulator())


@pytest.mark.parametrize("columns", [8, 32])
def test_hopper_has_a_warpgroups(columns: int) -> None:
    found = layouts.hopper(columns)
    holds(found.a, tables.wgmma_a())
    holds(found.d, tables.wgmma_accumulator(columns))
    assert found.d.shape == (64, columns)


def test_ldmatrix_gives_rows_to_four_lanes() -> None:
    found = layouts.ldmatrix()
    row, column = np.indices((32, 8))
    np.testing.assert_array_equal(found.thread, row % 8 * 4 + column // 2)
    np.testing.assert_array_equal(found.element, row // 8 * 2 + column % 2)


def test_wgmma_reads_b_where_the_swizzle_puts_it() -> None:
    n, k = np.indices((8, 64))
    np.testing.assert_array_equal(2 * layouts.swizzle(), tables.swizzled(128 * n + 2 * k, 128))


@pytest.mark.parametrize("columns", [16, 32])
def test_blackwell_gives_a_thread_a_row(columns: int) -> None:
    found = layouts.blackwell(columns)
    lane, column = np.indices((128, columns))
    np.testing.assert_array_equal(found.d.thread, lane)
    np.testing.assert_array_equal(found.d.register, column)
    for operand, rows in ((found.a.element, 128), (found.b.element.T, columns)):
        i, k = np.indices((rows, 16))
        np.testing.assert_array_equal(2 * operand, tables.descriptor_offset(i, k, 2, False, 0, 128, 256))


def test_a_warp_reaches_a_quarter_of_tensor_memory() -> None:
    warp, quarter = np.indices((8, 4))
    np.testing.assert_array_equal(layouts.tensor_memory_reach(), warp % 4 == quarter)


@pytest.mark.parametrize(
    ("name", "define", "kernel"),
    [
        ("sm70", "VOLTA", "product"),
        ("sm80", "AMPERE", "product"),
        ("sm80", "LOADED", "load"),
        ("sm90a", "HOPPER", "product"),
        ("sm100a", "BLACKWELL", "product"),
        ("sm100a", "BLACKWELL", "reach"),
    ],
)
def test_the_experiments_compile_for_their_gpu(name: str, define: str, kernel: str) -> None:
    defines = ((define, 1), ("COLUMNS", 16))
    compile_source(layouts.SOURCE.read_text(), layouts.SOURCE.name, name, defines, kernel=kernel)
