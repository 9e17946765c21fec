"""The levels of a noisy ladder: shelves, where the curve hardly rises, between the steep rises of a cache's end.

A CPU's ladder is not flat on its levels (address translation, a last-level cache shared with strangers), so a change of
the mean is the wrong thing to look for. A shelf is a stretch where the value grows by less than RISE per octave of
footprint; neighbours whose levels lie within MERGE of each other are one. Cache levels are farther apart than that: the
closest pair we know is a last-level cache at twice its inner neighbour.
"""

from dataclasses import dataclass

import numpy as np

from microbench.point import Curves, Floats, NoValue, Reduced, Reducer

RISE_PER_OCTAVE = 1.3
MERGE = 1.5
# A cache ends where the curve has risen to this many times its level: the geometric mean of two levels that are four
# times apart. Not more, or the end of a cache would be sought in the next one's where that one does not show.
END_RISE = 2.0
# A shelf is half an octave long at least, less what rounding takes from a sweep's steps (128 over 91 MiB).
SHORTEST_OCTAVES = 0.45
# Of the memory's shelf, what lies in the sweep's last octave counts: nearer to the last cache a part still hits (on an
# EPYC whose last cache has 32 MiB, 100 to 149 ns at 64 MiB and 140 to 153 ns at 256 MiB).
MEMORY_OCTAVES = 1.0


@dataclass(frozen=True)
class Shelf:
    """Points first..last (inclusive) of the ordered sweep, and the median value on them."""

    first: int
    last: int
    level: float


@dataclass(frozen=True)
class Ladder:
    """A sweep's shelves; which of the curves' points it holds, in ascending order; their sizes; its highest value."""

    order: tuple[int, ...]
    sizes: Floats
    shelves: tuple[Shelf, ...]
    end: float

    def cache(self, number: int) -> Shelf:
        """The `number`-th shelf from below. Raises NoValue where the curve does not leave it: it may be memory."""
        if number < len(self.shelves) - 1:
            return self.shelves[number]
        if number == len(self.shelves) - 1 and self.end >= END_RISE * self.shelves[number].level:
            return self.shelves[number]
        told = f"the ladder shows {len(self.shelves)} levels"
        raise NoValue(f"{told}, so cache number {number + 1} cannot be told from memory")

    def memory(self) -> Shelf:
        """The last shelf. Raises NoValue where the curve rises beyond it, or where it is the only one."""
        if not self.shelves or self.shelves[-1].last < len(self.order) - 1:
            raise NoValue("the ladder still rises where it ends, so its last level need not be memory")
        if len(self.shelves) < 2:
            raise NoValue("the ladder shows one level only, so its last one need not be memory")
        return self.shelves[-1]


def shelves(sizes: Floats, values: Floats) -> tuple[Shelf, ...]:
    """The shelves of one curve over ascending `sizes` in bytes. Raises NoValue below four finite points."""
    octaves, logs = np.log2(sizes), np.log(values)
    fit = _monotone(values)
    left, right = np.maximum(octaves - 0.5, octaves[0]), np.minimum(octaves + 0.5, octaves[-1])
    rise = (np.interp(right, octaves, fit) - np.interp(left, octaves, fit)) / (right - left)
    found: list[Shelf] = []
    for first, last in _runs(rise < np.log(RISE_PER_OCTAVE)):
        if octaves[last] - octaves[first] < SHORTEST_OCTAVES:
            continue
        level = float(np.exp(np.median(logs[first : last + 1])))
        if found and level < MERGE * found[-1].level:
            first = found.pop().first
            level = float(np.exp(np.median(logs[first : last + 1])))
        found.append(Shelf(first, last, level))
    return tuple(found)


def cache_latency(number: int, axis: str) -> Reducer:
    """The value on the `number`-th shelf from below. Raises where the curve never leaves it: it is memory then."""

    def reduce(curves: Curves) -> Reduced:
        ladder = _ladder(curves, axis)
        shelf = ladder.cache(number)
        return Reduced(np.nanmedian(curves.values[:, ladder.order[shelf.first : shelf.last + 1]], axis=1))

    return reduce


def memory_latency(axis: str) -> Reducer:
    """The value on the last shelf, within the sweep's last MEMORY_OCTAVES, which must lie beyond the last cache.

    Raises NoValue unless the last shelf reaches the
    sweep's end, and where it is the only one: such a ladder may never have left a cache.
    """

    def reduce(curves: Curves) -> Reduced:
        ladder = _ladder(curves, axis)
        inside = range(ladder.memory().first, len(ladder.order))
        far = [ladder.order[i] for i in inside if ladder.sizes[i] * 2**MEMORY_OCTAVES >= ladder.sizes[-1]]
        return Reduced(np.nanmedian(curves.values[:, far], axis=1))

    return reduce


def cache_size(number: int, axis: str) -> Reducer:
    """Where each campaign's curve leaves the `number`-th shelf, interpolated between two points of the sweep.

    It leaves where it crosses the geometric mean of this level and the next, or END_RISE times this level if less.
    """

    def reduce(curves: Curves) -> Reduced:
        ladder = _ladder(curves, axis)
        here = ladder.cache(number).level
        beyond = ladder.shelves[number + 1].level if number + 1 < len(ladder.shelves) else np.inf
        middle = np.log(here * min(END_RISE, np.sqrt(beyond / here)))
        sizes = np.log2(ladder.sizes)
        ends = np.full(len(curves.values), np.nan)
        for campaign, row in enumerate(curves.values[:, ladder.order]):
            there = np.isfinite(row)
            fit = _isotonic(np.log(row[there])) if there.any() else np.array([])
            above = int(np.searchsorted(fit, middle))
            if 0 < above < len(fit):
                around = slice(above - 1, above + 1)
                ends[campaign] = 2 ** np.interp(middle, fit[around], sizes[there][around])
        return Reduced(ends)

    return reduce


def _ladder(curves: Curves, axis: str) -> Ladder:
    """The median curve's ladder along `axis`, without the points that no campaign measured.

    The lower of two middle values counts: interference only adds time, and of two campaigns the mean would let one
    disturbed point bend the ladder.
    """
    measured = np.flatnonzero(np.isfinite(curves.values).any(axis=0))
    order = tuple(sorted((int(i) for i in measured), key=lambda i: float(curves.points[i][axis])))
    sizes = np.array([float(curves.points[i][axis]) for i in order])
    values = np.nanquantile(curves.values[:, order], 0.5, axis=0, method="lower")
    return Ladder(order, sizes, shelves(sizes, values), float(np.exp(_monotone(values)[-1])))


def _monotone(values: Floats) -> Floats:
    """The logarithm of a curve, monotone by isotonic regression: where latency falls as a footprint grows is noise."""
    logs = np.log(values)
    if len(logs) < 4 or not np.isfinite(logs).all():
        raise NoValue("a ladder needs at least four finite points")
    return _isotonic(logs)


def _isotonic(logs: Floats) -> Floats:
    from scipy.optimize import isotonic_regression  # 0.3 s of imports, which no worker on a GPU needs

    return np.asarray(isotonic_regression(logs).x, dtype=np.float64)


def _runs(flags: np.typing.NDArray[np.bool_]) -> list[tuple[int, int]]:
    edges = np.diff(np.concatenate([[0], flags.astype(np.int8), [0]]))
    return list(zip(np.flatnonzero(edges == 1).tolist(), (np.flatnonzero(edges == -1) - 1).tolist(), strict=True))
