"""The levels of a noisy ladder: shelves, where the curve hardly rises, between the steep rises of a cache's end.

A CPU's ladder is not flat on its levels (address translation, a last-level cache shared with strangers), so a change of
the mean is the wrong thing to look for. A shelf is a stretch where the value grows by less than RISE per octave of
footprint; neighbours whose levels lie within MERGE of each other are one. Cache levels are farther apart than that: the
closest pair we know is a last-level cache at twice its inner neighbour.
"""

from dataclasses import dataclass

import numpy as np
from scipy.optimize import isotonic_regression

from microbench.curves import Curves, Floats, NoValue, Reduced, Reducer

RISE_PER_OCTAVE = 1.3
MERGE = 1.5
# A cache ends where the curve has risen to this many times its level: the geometric mean of two levels that are four
# times apart. Not more, or the end of a cache would be sought in the next one's where that one does not show.
END_RISE = 2.0
SHORTEST_POINTS = 3


@dataclass(frozen=True)
class Shelf:
    """Points first..last (inclusive) of the ordered sweep, and the median value on them."""

    first: int
    last: int
    level: float


def shelves(sizes: Floats, values: Floats) -> tuple[Shelf, ...]:
    """The shelves of one curve over ascending `sizes` in bytes. Raises NoValue below four finite points.

    The curve is made monotone first (isotonic regression of its logarithm): latency cannot fall as a footprint grows,
    so what falls is noise.
    """
    octaves, logs = np.log2(sizes), np.log(values)
    if len(logs) < 4 or not np.isfinite(logs).all():
        raise NoValue("a ladder needs at least four finite points")
    fit = isotonic_regression(logs).x
    left, right = np.maximum(octaves - 0.5, octaves[0]), np.minimum(octaves + 0.5, octaves[-1])
    rise = (np.interp(right, octaves, fit) - np.interp(left, octaves, fit)) / (right - left)
    found: list[Shelf] = []
    for first, last in _runs(rise < np.log(RISE_PER_OCTAVE)):
        if last - first + 1 < SHORTEST_POINTS:
            continue
        level = float(np.exp(np.median(logs[first : last + 1])))
        if found and level < MERGE * found[-1].level:
            first = found.pop().first
            level = float(np.exp(np.median(logs[first : last + 1])))
        found.append(Shelf(first, last, level))
    return tuple(found)


def cache_latency(number: int, axis: str) -> Reducer:
    """The value on the `number`-th shelf from below, which must not be the last one: that is memory."""

    def reduce(curves: Curves) -> Reduced:
        order, found = _found(curves, axis)
        shelf = _cache(found, number)
        return Reduced(np.nanmedian(curves.values[:, order[shelf.first : shelf.last + 1]], axis=1))

    return reduce


def memory_latency(axis: str) -> Reducer:
    """The value on the last shelf. Raises NoValue where the ladder has one shelf only, and so never left a cache."""

    def reduce(curves: Curves) -> Reduced:
        order, found = _found(curves, axis)
        if len(found) < 2:
            raise NoValue("the ladder shows one level only, so its last one need not be memory")
        shelf = found[-1]
        return Reduced(np.nanmedian(curves.values[:, order[shelf.first : shelf.last + 1]], axis=1))

    return reduce


def cache_size(number: int, axis: str) -> Reducer:
    """Where each campaign's curve leaves the `number`-th shelf, interpolated between two points of the sweep.

    It leaves where it crosses the geometric mean of this level and the next, or END_RISE times this level if less.
    """

    def reduce(curves: Curves) -> Reduced:
        order, found = _found(curves, axis)
        here, beyond = _cache(found, number).level, found[number + 1].level
        middle = np.log(here * min(END_RISE, np.sqrt(beyond / here)))
        sizes = np.log2([float(curves.points[i][axis]) for i in order])
        ends = np.full(len(curves.values), np.nan)
        for campaign, row in enumerate(curves.values[:, order]):
            there = np.isfinite(row)
            fit = isotonic_regression(np.log(row[there])).x if there.any() else np.array([])
            above = int(np.searchsorted(fit, middle))
            if 0 < above < len(fit):
                around = slice(above - 1, above + 1)
                ends[campaign] = 2 ** np.interp(middle, fit[around], sizes[there][around])
        return Reduced(ends)

    return reduce


def _cache(found: tuple[Shelf, ...], number: int) -> Shelf:
    if number >= len(found) - 1:
        raise NoValue(f"the ladder shows {len(found)} levels, so cache number {number + 1} cannot be told from memory")
    return found[number]


def _found(curves: Curves, axis: str) -> tuple[list[int], tuple[Shelf, ...]]:
    """The points in ascending order of `axis` (those that no campaign measured are left out), and their shelves."""
    measured = np.flatnonzero(np.isfinite(curves.values).any(axis=0))
    order = sorted((int(i) for i in measured), key=lambda i: float(curves.points[i][axis]))
    sizes = np.array([float(curves.points[i][axis]) for i in order])
    return order, shelves(sizes, np.nanmedian(curves.values[:, order], axis=0))


def _runs(flags: np.typing.NDArray[np.bool_]) -> list[tuple[int, int]]:
    """(first, last) of every run of True."""
    edges = np.diff(np.concatenate([[0], flags.astype(np.int8), [0]]))
    return list(zip(np.flatnonzero(edges == 1).tolist(), (np.flatnonzero(edges == -1) - 1).tolist(), strict=True))
