"""The layout of a matrix product, found from outside: give it fragments, look at what comes back.

Nothing about the instruction is assumed but that D = A B. Three experiments tell everything:

    one element of A is 1, all of B    which elements of D are not 0: those in its row
    all of A, one element of B is 1    which elements of D are not 0: those in its column
    one element of A is 1, B numbered  which number comes back in each column: the element of B with the same k

A product is the same after its rows, columns or k are renumbered, so an experiment cannot tell numbers: they are given
in the order in which the elements of A and of B are handed over.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from microbench.errors import DeviceError

Numbers = NDArray[np.int64]
Values = NDArray[Any]
# (experiments, elements of A) and (experiments, elements of B) to (experiments, elements of D).
Multiply = Callable[[Values, Values], Values]


@dataclass(frozen=True, eq=False)
class Solved:
    """One product: the number of the element that stands at each place of A (m, k), B (k, n) and D (m, n)."""

    a: Numbers
    b: Numbers
    d: Numbers


@dataclass(frozen=True, eq=False)
class _Line:
    """A row or a column: the elements of A or of B in it, in order, and which elements of D it reaches."""

    members: tuple[int, ...]
    reaches: NDArray[np.bool_]


def solve(multiply: Multiply, a_count: int, b_count: int) -> tuple[Solved, ...]:
    """Every independent product that the instruction makes, in the order of its first element of A.

    Raises DeviceError where what comes back is no product of matrices.
    """
    single = np.eye(a_count)
    rows = _lines(multiply(single, np.ones((a_count, b_count))))
    columns = _lines(multiply(np.ones((b_count, a_count)), np.eye(b_count)))
    numbered = np.zeros(b_count)
    for column in columns:
        numbered[list(column.members)] = 1 + np.arange(len(column.members))
    partners = multiply(single, np.tile(numbered, (a_count, 1))).astype(np.int64) - 1

    # Rows that reach the same columns belong to the same product.
    products: dict[tuple[int, ...], list[_Line]] = {}
    for row in rows:
        reached = tuple(at for at, column in enumerate(columns) if (row.reaches & column.reaches).any())
        products.setdefault(reached, []).append(row)
    return tuple(
        _product(mine, [columns[at] for at in reached], partners) for reached, mine in products.items() if reached
    )


def numbered_like(solved: Solved, d: Numbers) -> Solved:
    """The same product with its rows and columns numbered so that D is `d`. Raises DeviceError where none does that."""
    where = {int(number): place for place, number in np.ndenumerate(d)}
    if set(where) != set(solved.d.ravel().tolist()):
        raise DeviceError("Two products hold their accumulators in different registers; their layouts do not compare.")
    rows = np.argsort([where[int(number)][0] for number in solved.d[:, 0]])
    columns = np.argsort([where[int(number)][1] for number in solved.d[0]])
    renumbered = Solved(solved.a[rows], solved.b[:, columns], solved.d[np.ix_(rows, columns)])
    if not np.array_equal(renumbered.d, d):
        raise DeviceError("No numbering of rows and columns gives both products the same accumulators.")
    return renumbered


def _lines(came_back: Values) -> list[_Line]:
    """Elements that reach the same elements of D, by first element; those that reach none belong to no matrix."""
    found: dict[bytes, list[int]] = {}
    reaches = came_back != 0
    for number, reached in enumerate(reaches):
        if reached.any():
            found.setdefault(reached.tobytes(), []).append(number)
    return [_Line(tuple(members), reaches[members[0]]) for members in found.values()]


def _product(rows: list[_Line], columns: list[_Line], partners: Numbers) -> Solved:
    depths = {len(line.members) for line in (*rows, *columns)}
    crossings = np.array([[row.reaches & column.reaches for column in columns] for row in rows])
    if len(depths) != 1 or not (crossings.sum(axis=2) == 1).all():
        raise DeviceError("What the instruction gives back is no product of two matrices; its wrapper is wrong.")
    d = crossings.argmax(axis=2)
    b = np.array(
        [[columns[n].members[partners[member, d[0, n]]] for n in range(len(columns))] for member in rows[0].members]
    )
    k_of = {int(number): k for k, number in enumerate(b[:, 0])}
    a = np.empty((len(rows), len(b)), np.int64)
    for m, row in enumerate(rows):
        for member in row.members:
            a[m, k_of[columns[0].members[partners[member, d[m, 0]]]]] = member
    return Solved(a, b, d)
