"""Problems that were timed under one key, by their sizes, and what they weigh for another: see corrections."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, NamedTuple

import numpy as np

from attention.choose.prediction import Efficiency

STEPS = 2  # of sizes in an octave: coarser ones pick worse, finer ones no better
NEARNESS = 2.0  # by what power of e a problem weighs less that lies an octave further
Place = tuple[int, ...]  # coordinates in half octaves: choose.kinds
Places = np.ndarray[Any, np.dtype[np.int64]]
Floats = np.ndarray[Any, np.dtype[np.float64]]


@dataclass(frozen=True)
class Sized:
    """What lies under one key: at each of the places `at` an efficiency, and the problems that it is the median of.

    `at` counts Corrections.places, which all keys share.
    """

    at: tuple[int, ...]
    values: tuple[float, ...]
    timings: tuple[int, ...]
    overhead_seconds: float = 0.0

    @cached_property
    def seen(self) -> int:
        """Problems in all."""
        return sum(self.timings)

    def efficiency(self, number: int) -> Efficiency:
        """One of them."""
        return Efficiency(self.values[number], self.timings[number], near=True, overhead_seconds=self.overhead_seconds)


@dataclass(frozen=True, eq=False)
class Alike:
    """What lies under the keys of one kind side by side, for a choice asks for all configurations of a variant.

    `row` is a key's; what was not timed at a place of another one counts nothing.
    """

    by_key: Mapping[Any, Sized]

    @cached_property
    def keys(self) -> tuple[Sized, ...]:
        """In the order of rows."""
        return tuple(self.by_key.values())

    @cached_property
    def row(self) -> dict[Any, int]:
        """Where a key stands."""
        return {key: row for row, key in enumerate(self.by_key)}

    @cached_property
    def numbers(self) -> list[int]:
        """The places of all keys."""
        return sorted({number for each in self.keys for number in each.at})

    @cached_property
    def timings(self) -> Floats:
        """How often each was timed at each place."""
        return self._table(lambda many, _: many)

    @cached_property
    def logs(self) -> Floats:
        """The logarithm of each efficiency, as often as it was seen."""
        return self._table(lambda many, value: many * math.log(value))

    def _table(self, entry: Callable[[int, float], float]) -> Floats:
        column = {number: at for at, number in enumerate(self.numbers)}
        found = np.zeros((len(self.keys), len(column)))
        for row, each in enumerate(self.keys):
            for number, many, value in zip(each.at, each.timings, each.values, strict=True):
                found[row, column[number]] = entry(many, value)
        return found


NONE_ALIKE = Alike({})


class Weighed(NamedTuple):
    """Of each key the weight of all its problems, and the sum of their logarithms by it."""

    together: list[float]
    logs: list[float]


class Near:
    """What each place weighs for a problem at one of them; a choice asks for many keys."""

    def __init__(self, here: Place, places: Places) -> None:
        squares = np.square(places - here).sum(axis=1).tolist()
        self.weights: Floats = np.array(list(map(_weight, squares)))
        self._known: dict[Alike, Weighed] = {}

    def of(self, alike: Alike) -> Weighed:
        """The keys of a kind. Problems are added up one after another: in pairs they would end in other digits."""
        found = self._known.get(alike)
        if found is None:
            weights = self.weights[alike.numbers]
            sums = [(weights * table).cumsum(axis=1)[:, -1].tolist() for table in (alike.timings, alike.logs)]
            found = self._known[alike] = Weighed(*sums)
        return found


@lru_cache(maxsize=4096)
def _weight(square: int) -> float:
    """What a problem weighs by the square of its distance, of which there are few: sizes are whole steps."""
    return math.exp(-NEARNESS * math.sqrt(square) / STEPS)
