"""A layout is found from outside, whatever it is; what is no product of matrices is refused."""

from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from microbench.errors import DeviceError
from microbench.layouts.derive import Numbers, Solved, Values, numbered_like, solve


@dataclass(frozen=True, eq=False)
class Machine:
    """Products of a known layout: the number of the element at (product, row, column) of A, B and D."""

    a: Numbers
    b: Numbers
    d: Numbers
    idle: int = 0  # elements of B that belong to no matrix

    def multiply(self, a: Values, b: Values) -> Values:
        d = np.empty((len(a), self.d.size))
        d[:, self.d] = a[:, self.a] @ b[:, self.b]
        return d

    def solve(self) -> tuple[Solved, ...]:
        return solve(self.multiply, self.a.size, self.b.size + self.idle)


def machine(seed: int, products: int, m: int, n: int, k: int, idle: int = 0) -> Machine:
    rng = np.random.default_rng(seed)

    def scattered(rows: int, columns: int, among: int) -> Numbers:
        return rng.permutation(among)[: products * rows * columns].reshape(products, rows, columns)

    d = scattered(m, n, products * m * n)
    return Machine(scattered(m, k, products * m * k), scattered(k, n, products * k * n + idle), d, idle)


def rows_of(matrix: Numbers) -> set[frozenset[int]]:
    return {frozenset(row.tolist()) for row in matrix}


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    products=st.integers(1, 4),
    shape=st.tuples(st.integers(1, 6), st.integers(1, 6), st.integers(1, 6)),
    idle=st.integers(0, 5),
)
def test_any_layout_is_found(seed: int, products: int, shape: tuple[int, int, int], idle: int) -> None:
    given_machine = machine(seed, products, *shape, idle)
    solved = given_machine.solve()
    assert len(solved) == products
    for one in solved:
        (place,) = (p for p in range(products) if one.a[0, 0] in given_machine.a[p])
        assert rows_of(one.a) == rows_of(given_machine.a[place])
        assert rows_of(one.b.T) == rows_of(given_machine.b[place].T)
        again = Machine(one.a[None], one.b[None], np.arange(one.d.size).reshape(1, *one.d.shape))
        rng = np.random.default_rng(seed)
        a, b = rng.random((3, given_machine.a.size)), rng.random((3, given_machine.b.size + idle))
        np.testing.assert_allclose(again.multiply(a, b), given_machine.multiply(a, b)[:, one.d.ravel()])


@given(seed=st.integers(0, 2**32 - 1))
def test_numbers_follow_the_first_elements(seed: int) -> None:
    (one,) = machine(seed, 1, 4, 3, 2).solve()
    assert list(one.a.min(axis=1)) == sorted(one.a.min(axis=1))
    assert list(one.b.min(axis=0)) == sorted(one.b.min(axis=0)) and list(one.a[0]) == sorted(one.a[0])


def test_a_product_is_renumbered_by_the_accumulators_it_shares() -> None:
    (one,) = machine(3, 1, 4, 3, 2).solve()
    other = one.d[[2, 0, 3, 1]][:, [1, 2, 0]]
    renumbered = numbered_like(one, other)
    np.testing.assert_array_equal(renumbered.d, other)
    np.testing.assert_array_equal(renumbered.a, one.a[[2, 0, 3, 1]])
    np.testing.assert_array_equal(renumbered.b, one.b[:, [1, 2, 0]])


def test_other_accumulators_are_no_numbering() -> None:
    (one,) = machine(3, 1, 4, 3, 2).solve()
    swapped = one.d.copy()
    swapped[0, 0], swapped[1, 1] = one.d[1, 1], one.d[0, 0]
    with pytest.raises(DeviceError, match="No numbering"):
        numbered_like(one, swapped)
    with pytest.raises(DeviceError, match="different registers"):
        numbered_like(one, one.d + 1)


def test_what_is_no_product_is_refused() -> None:
    good = machine(1, 1, 4, 4, 2)

    def leaks(a: Values, b: Values) -> Values:
        d = good.multiply(a, b)
        d[:, good.d[0, 0, 0]] += d[:, good.d[0, 1, 1]]
        return d

    with pytest.raises(DeviceError, match="no product"):
        solve(leaks, good.a.size, good.b.size)
