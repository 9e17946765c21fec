"""The scores of one m8n8k4 as the operand of the next one: what has to move, whatever the order of the keys.

A tile of 8 x 8 scores is 64 halves of eight lanes. As operands they are two steps of four keys, in an order of the
keys that is free, since the rows of V may be taken in the same order.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import permutations

import numpy as np

from microbench import layouts
from microbench.layouts import Order
from microbench.layouts.derive import Numbers

KEYS, STEP = 8, 4


@dataclass(frozen=True)
class Moves:
    """Of the 64 halves, how many change their lane, by the best and by the worst order of the keys."""

    least: int
    most: int


def moves(order: Order) -> Moves:
    """Every one of the 8! orders tried, with p as a row-major or a column-major A."""
    first, second = layouts.volta("row", "col")[0], layouts.volta(order, "row")[0]
    elsewhere = (first.d.thread[:, :, None] != second.a.thread[:, None, :]).sum(axis=0)  # (key, place in a step)
    orders = np.array(list(permutations(range(KEYS))))
    total = elsewhere[orders, np.arange(KEYS) % STEP].sum(axis=1)
    return Moves(int(total.min()), int(total.max()))


def sources(keys: Sequence[int]) -> Numbers:
    """(8, 8): who made each half of a row-major A, by row and place in this order of the keys."""
    return layouts.volta("row", "col")[0].d.thread[:, list(keys)]


def shuffles(keys: Sequence[int]) -> int:
    """Shuffles of 32-bit words that bring every lane its row; a word of which half lies elsewhere takes one too."""
    owner = layouts.volta("row", "row")[0].a.thread[:, :1]
    words = sources(keys).reshape(KEYS, -1, 2)
    foreign = words != owner[:, :, None]
    apart = words[..., 0] != words[..., 1]
    return int(np.where(apart, foreign.sum(axis=2), foreign.any(axis=2)).sum(axis=1).max())
