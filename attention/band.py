"""The band of keys that a query sees: what causality and a sliding window come to, as two numbers.

    query i sees keys j with  i + left <= j <= i + right        None: that side is open

Causal from the top left is right = 0. Aligned bottom-right, the last query sees the last key: both edges move by
Skv - Sq. A kernel needs nothing else to place its masks and to leave tiles out.
"""

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from attention.errors import ProblemError

Alignment = Literal["top_left", "bottom_right"]
Rows = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Band:
    """Edges relative to the diagonal, both of them seen. Where both are given, left <= right + 1."""

    left: int | None = None
    right: int | None = None

    @property
    def open(self) -> bool:
        """True where every query sees every key."""
        return self.left is None and self.right is None

    def moved(self, by: int) -> "Band":
        """The same band, `by` keys further right."""
        return Band(
            None if self.left is None else self.left + by,
            None if self.right is None else self.right + by,
        )

    def keys(self, first: Rows, last: Rows, seq_kv: int) -> tuple[Rows, Rows]:
        """The keys [begin, end) that any of queries first to last sees, for each pair of an array."""
        begin = np.zeros_like(first) if self.left is None else _within(first + self.left, seq_kv)
        end = np.full_like(last, seq_kv) if self.right is None else _within(last + self.right + 1, seq_kv)
        return begin, np.maximum(begin, end)

    def scores(self, seq_q: int, seq_kv: int) -> int:
        """How many pairs of query and key it lets through."""
        below_end = seq_q * seq_kv if self.right is None else _clamped_sum(self.right + 1, seq_q, seq_kv)
        return below_end - (0 if self.left is None else _clamped_sum(self.left, seq_q, seq_kv))

    def tightened(self, alignment: Alignment, seq_q: int, seq_kv: int) -> "Band":
        """Without an edge that hides nothing, where a sequence has at most seq_q queries and seq_kv keys.

        Top-left, the last query reaches furthest right of the left edge, and the first one least far to the right.
        Bottom-right, these two are Skv - 1 + left and Skv - Sq + right, whatever the lengths are.
        """
        rows, keys = (seq_q, seq_kv) if alignment == "top_left" else (seq_kv, seq_q)
        left = None if self.left is not None and rows - 1 + self.left <= 0 else self.left
        right = None if self.right is not None and self.right >= keys - 1 else self.right
        return Band(left, right)


def window_of(given: Any) -> tuple[int, int]:
    """Keys to the left and right, -1 for all. Raises ProblemError."""
    pair = tuple(given) if isinstance(given, (tuple, list)) else ()
    if len(pair) != 2 or not all(isinstance(size, int) and size >= -1 for size in pair):
        raise ProblemError(f"window is {given!r}; give two whole numbers, keys to the left and right, -1 for all.")
    return pair


def _within(keys: Rows, seq_kv: int) -> Rows:
    """From 0 to seq_kv: what np.clip gives, in a third of its time on short arrays."""
    return np.minimum(np.maximum(keys, 0), seq_kv)


def _clamped_sum(start: int, rows: int, most: int) -> int:
    """The sum of min(most, max(0, start + i)) over i = 0 .. rows - 1."""
    return _positive_sum(start, rows) - _positive_sum(start - most, rows)


def _positive_sum(start: int, rows: int) -> int:
    """The sum of max(0, start + i) over i = 0 .. rows - 1."""
    return _triangle(start + rows - 1) - _triangle(start - 1)


def _triangle(last: int) -> int:
    return last * (last + 1) // 2 if last > 0 else 0
