"""Problems that were timed under one key, by their sizes, and what they weigh for another: see corrections."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, lru_cache
from operator import itemgetter, mul
from typing import Any

import numpy as np

from attention.choose.prediction import Efficiency

STEPS = 2  # of sizes in an octave: coarser ones pick worse, finer ones no better
Place = tuple[int, int, int]  # queries, keys, and batch x heads, in half octaves; on the CPU keys alone, in whole ones
Places = np.ndarray[Any, np.dtype[np.int64]]


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
    def logs(self) -> tuple[float, ...]:
        """The logarithm of each, as often as it was seen."""
        return tuple(many * math.log(value) for many, value in zip(self.timings, self.values, strict=True))

    @cached_property
    def chosen(self) -> Callable[[tuple[float, ...]], tuple[float, ...]]:
        """What takes its places out of what there is for each."""
        return itemgetter(*self.at) if len(self.at) > 1 else itemgetter(slice(self.at[0], self.at[0] + 1))

    @cached_property
    def seen(self) -> int:
        """Problems in all."""
        return sum(self.timings)

    def efficiency(self, number: int) -> Efficiency:
        """One of them."""
        return Efficiency(self.values[number], self.timings[number], near=True, overhead_seconds=self.overhead_seconds)


class Near:
    """What each place weighs for a problem at one of them; a choice asks for many keys."""

    def __init__(self, here: Place, places: Places) -> None:
        squares = np.square(places - here).sum(axis=1).tolist()
        self.weights = tuple(map(_weight, squares))
        self.last: tuple[Any, Any, tuple[float, ...], float] = None, None, (), 0.0

    def of(self, sized: Sized) -> tuple[tuple[float, ...], float]:
        """Of the places of a key, and of all its problems together.

        Configurations of a variant are asked for one after another, and most were timed on the same problems: such keys
        share the numbers of their places (learned_file).
        """
        at, timings, weights, together = self.last
        if at is not sized.at or timings is not sized.timings:
            weights = sized.chosen(self.weights)
            together = sum(map(mul, weights, sized.timings))
            self.last = sized.at, sized.timings, weights, together
        return weights, together


@lru_cache(maxsize=4096)
def _weight(square: int) -> float:
    """What a problem weighs by the square of its distance, of which there are few: sizes are whole steps."""
    return math.exp(-math.sqrt(square) / STEPS)
