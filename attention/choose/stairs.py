"""Steps of keys that steps of rows meet left of a right edge: a staircase, summed up without looking at each stair.

A step of rows r sees keys up to that of its last query, so that it meets floor((a r + b) / m) steps of keys, between
none and all. Arrays take longer than this for less than thousands of steps, and a causal choice asks for ten such sums.
"""

from typing import NamedTuple


class Stairs(NamedTuple):
    """Of so many steps of `rows`, `heads` of a group side by side, over steps of `columns` of `keys`.

    `right`: the last key that a query sees, beside the diagonal.
    """

    steps: int
    rows: int
    columns: int
    heads: int
    right: int
    keys: int

    def met(self, row: int) -> int:
        """Steps of keys of one step of rows: no later one has fewer."""
        return min(self._most, max(0, (self.rows * row + self._begin) // self._wide))

    def met_in_all(self) -> int:
        """The sum over all steps of rows."""
        begin, most, wide = self._begin, self._most, self._wide
        # The first that meets some, and the first that meets all.
        some = min(self.steps, max(0, -(begin // self.rows)))
        every = min(self.steps, max(some, -((begin - most * wide) // self.rows)))
        return floor_sum(every - some, self.rows, self.rows * some + begin, wide) + most * (self.steps - every)

    @property
    def _begin(self) -> int:
        return self.rows - 1 + self.heads * (self.right + self.columns)

    @property
    def _wide(self) -> int:
        return self.heads * self.columns

    @property
    def _most(self) -> int:
        return -(-self.keys // self.columns)


def floor_sum(count: int, slope: int, begin: int, wide: int) -> int:
    """The sum of floor((slope i + begin) / wide) over i = 0 .. count - 1, of whole numbers, by Euclid's algorithm."""
    found = 0
    while count > 0:
        found += (slope // wide) * (count * (count - 1) // 2) + (begin // wide) * count
        slope, begin = slope % wide, begin % wide
        # What is left are points below a line, which are counted along the other axis.
        count, begin = divmod(slope * count + begin, wide)
        slope, wide = wide, slope
    return found
