"""From a swept curve to the constants of a profile.

A campaign's curve is the median at each point. A reducer turns the curves of all campaigns into one value per
campaign, so that the interval is over campaigns, from the least to the most. It is no confidence interval: campaigns
share a board, a boot and a few minutes, and of two H100s 7 of 89 intervals are disjoint.
"""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from microbench.point import Curves, Floats, NoValue, Reduced, Reducer, Value

FLAT = 0.01
# A point is still on its plateau up to 3 % above the level: the first misses of a cache add more than that.
KNEE = 1.03
# Neighbours of one plateau. At 8 MiB an H200's L2 dips by 3.4 % at 64 KiB in flight, between two points that agree: at
# 3 % the plateau was the dip and one of them, now and then the other, and runs of one board lay 3.1 % apart.
SHARED = 0.05
NO_PLATEAU = "no two neighbours of its sweep agree"


def interval(per_campaign: Floats) -> tuple[float, float, float]:
    """(median, least, most) of the campaigns that measured it. Raises NoValue where none did."""
    values = per_campaign[np.isfinite(per_campaign)]
    if len(values) == 0:
        raise NoValue("no campaign measured it")
    return float(np.median(values)), float(values.min()), float(values.max())


def median_curve(curves: Curves) -> Floats:
    """The median over campaigns at each point; NaN where no campaign has a value."""
    measured = np.asarray(np.isfinite(curves.values).any(axis=0))
    found = np.full(len(curves.points), np.nan)
    found[measured] = np.nanmedian(curves.values[:, measured], axis=0)
    return found


def at(**point: Value) -> Reducer:
    """The value at the one point with these axis values (the only point where none is named)."""

    def reduce(curves: Curves) -> Reduced:
        hits = [i for i, candidate in enumerate(curves.points) if candidate.matches(**point)]
        if len(hits) != 1:
            raise NoValue(f"{len(hits)} points match {point}, one is needed")
        return Reduced(curves.values[:, hits[0]], (curves.points[hits[0]],))

    return reduce


def first(*reducers: Reducer) -> Reducer:
    """What the first of these gives that finds a value. Raises NoValue, as the first does, where none finds one."""

    def reduce(curves: Curves) -> Reduced:
        for each in reducers:
            with suppress(NoValue):
                return each(curves)
        return reducers[0](curves)

    return reduce


def over(axis: str, low: float, high: float) -> Reducer:
    """The median over the points whose `axis` lies in [low, high]."""

    def reduce(curves: Curves) -> Reduced:
        inside = [low <= point[axis] <= high for point in curves.points]
        if not any(inside):
            raise NoValue(f"no point has {axis} in [{low:g}, {high:g}]")
        return Reduced(np.nanmedian(curves.values[:, inside], axis=1))

    return reduce


def peak(axis: str, **where: Value) -> Reducer:
    """The level of the highest plateau along `axis`: neighbours within SHARED of one another, two at least.

    No argmax: a single point that stands out is a hump or luck, and the highest of many noisy points is too high. A
    'lower bound' where no two neighbours agree (the highest point counts then), or where the plateau ends the sweep
    and its last step still added more than FLAT.
    """

    def reduce(curves: Curves) -> Reduced:
        keep = _along(curves, axis, where)
        if len(keep) == 0:
            raise NoValue(f"no value along {axis}")
        medians = median_curve(curves)[keep]
        flat = _highest_stretch(medians)
        inside = keep[flat.start : flat.stop]
        last = len(medians) - 1
        rising = last in flat and medians[-1] > (1 + FLAT) * medians[-2:-1].max(initial=0.0)
        label = "lower bound" if len(flat) < 2 or rising else "measured"
        flags = () if len(flat) > 1 or len(medians) == 1 else (NO_PLATEAU,)
        points = tuple(curves.points[i] for i in inside)
        return Reduced(np.nanmedian(curves.values[:, inside], axis=1), points, label, flags)

    return reduce


def _highest_stretch(medians: Floats) -> range:
    """The neighbours, two or more, within SHARED of one another whose median is highest; else the highest point."""
    stretches = [range(first, _end(medians, first)) for first in range(len(medians))]
    shared = [stretch for stretch in stretches if len(stretch) > 1]
    if shared:
        return max(shared, key=lambda stretch: (float(np.median(medians[stretch.start : stretch.stop])), len(stretch)))
    best = int(np.argmax(medians))
    return range(best, best + 1)


def _end(medians: Floats, first: int) -> int:
    """Behind the longest stretch from `first` on whose highest point lies within SHARED of its lowest."""
    end = first + 1
    while end < len(medians) and np.ptp(medians[first : end + 1]) <= SHARED * medians[first : end + 1].min():
        end += 1
    return end


def slope(axis: str, **where: Value) -> Reducer:
    """The least-squares slope along `axis`: what one more of it costs."""

    def reduce(curves: Curves) -> Reduced:
        keep = _along(curves, axis, where)
        x = np.array([float(curves.points[i][axis]) for i in keep])
        fits = []
        for row in curves.values[:, keep]:
            good = np.isfinite(row)
            fits.append(float(np.polyfit(x[good], row[good], 1)[0]) if good.sum() >= 3 else np.nan)
        if not np.isfinite(fits).any():
            raise NoValue(f"a slope along {axis} needs three points")
        return Reduced(np.array(fits))

    return reduce


@dataclass(frozen=True)
class Plateau:
    """A flat stretch of a curve: points first..last (inclusive), and its level."""

    first: int
    last: int
    level: float


# The least that a plateau spans of its axis, as a ratio: a sixth of an octave. In a sweep of 24 points to the octave
# two or three neighbours of a rise lie within 6 % of each other (on an H200 between its L2's two levels, in half of
# the campaigns); a quick sweep's points lie a quarter of an octave apart.
SPAN = 2 ** (1 / 6)


def plateaus(
    values: Sequence[float] | Floats, at: Sequence[float] | Floats | None = None, flat: float = 0.06, step: float = 0.12
) -> tuple[Plateau, ...]:
    """The flat stretches of a rising curve, by change-point detection on its logarithm.

    at   where the values were measured, ascending: a plateau spans at least `SPAN` of it

    `_pieces` cuts the curve where its mean jumps. The plateau of a piece is its longest run of
    points that span less than `flat` (relative) around its median: a fine sweep leaves some points of the rise at its
    ends. A piece of which less than half is flat is a rise, the mixture of hits and misses, and no plateau. Neighbours
    within `step` of each other are one.
    """
    logs = np.log(np.asarray(values, dtype=np.float64))
    if len(logs) < 4 or not np.isfinite(logs).all():
        raise NoValue("a plateau needs at least four finite points")
    found: list[Plateau] = []
    for begin, stop in _pieces(logs, penalty=4 * flat**2):
        core = _longest_run(np.abs(logs[begin:stop] - np.median(logs[begin:stop])) <= flat / 2)
        first, end = begin + core.start, begin + core.stop
        if len(core) < max(2, (stop - begin) / 2) or (at is not None and at[end - 1] < at[first] * SPAN):
            continue
        level = float(np.exp(np.median(logs[first:end])))
        if found and abs(np.log(level / found[-1].level)) < step:
            start = found[-1].first
            found[-1] = Plateau(start, end - 1, float(np.exp(np.median(logs[start:end]))))
        else:
            found.append(Plateau(first, end - 1, level))
    return tuple(found)


def _pieces(values: Floats, penalty: float) -> list[tuple[int, int]]:
    """The pieces [begin, stop), of two values or more, with the least squares around their means plus `penalty` each.

    The exact dynamic programme over where the last piece begins (Jackson et al., 2005): for the few hundred points of a
    sweep it takes milliseconds. shelves.py does not serve here: it looks half an octave to either side, and a GPU's two
    L2 levels lie within one octave (31 to 50 MB and 56 to 78 MB on an H100).
    """
    count = len(values)
    sums, squares = (
        np.concatenate([[0.0], np.cumsum(part)]) for part in (values - values.mean(), (values - values.mean()) ** 2)
    )
    best, begins = np.full(count + 1, np.inf), np.zeros(count + 1, dtype=np.intp)
    best[0] = 0.0
    for stop in range(2, count + 1):
        begin = np.arange(stop - 1)
        spread = squares[stop] - squares[begin] - (sums[stop] - sums[begin]) ** 2 / (stop - begin)
        costs = best[begin] + spread + penalty
        begins[stop] = np.argmin(costs)
        best[stop] = costs[begins[stop]]
    pieces, stop = [], count
    while stop:
        pieces.append((int(begins[stop]), stop))
        stop = int(begins[stop])
    return pieces[::-1]


def _longest_run(holds: NDArray[np.bool_]) -> range:
    """The longest stretch of True, as positions."""
    best = range(0)
    start = 0
    for position, true in enumerate([*holds, False]):
        if not true:
            best = max(best, range(start, position), key=len)
            start = position + 1
    return best


def level(number: int, axis: str, **where: Value) -> Reducer:
    """The latency of the `number`-th plateau along `axis`, -1 for the last: the median over its points."""

    def reduce(curves: Curves) -> Reduced:
        order = _along(curves, axis, where)
        flats = _plateaus(curves, order, axis)
        flat = _pick(flats, number)
        inside = order[flat.first : flat.last + 1]
        return Reduced(np.nanmedian(curves.values[:, inside], axis=1))

    return reduce


def knee(number: int, axis: str, **where: Value) -> Reducer:
    """Where the `number`-th plateau ends: the largest `axis` value that each campaign still measured at its level.

    The true capacity lies between this point and the next one, which is the sweep's resolution.
    """

    def reduce(curves: Curves) -> Reduced:
        order = _along(curves, axis, where)
        size = _places(curves, order, axis)
        flat = _pick(_plateaus(curves, order, axis), number)
        ends = []
        for row in curves.values[:, order]:
            on_it = row <= np.nanmedian(row[flat.first : flat.last + 1]) * KNEE
            ends.append(size[on_it].max() if on_it.any() else np.nan)
        return Reduced(np.array(ends))

    return reduce


def _along(curves: Curves, axis: str, where: dict[str, Value]) -> NDArray[np.intp]:
    """The points with the wanted axis values that any campaign measured, sorted along `axis`."""
    measured = np.asarray(np.isfinite(curves.values).any(axis=0))
    keep = [i for i, point in enumerate(curves.points) if measured[i] and point.matches(**where)]
    return np.array(sorted(keep, key=lambda i: float(curves.points[i][axis])), dtype=np.intp)


def _places(curves: Curves, order: NDArray[np.intp], axis: str) -> Floats:
    return np.array([float(curves.points[i][axis]) for i in order])


def _plateaus(curves: Curves, order: NDArray[np.intp], axis: str) -> tuple[Plateau, ...]:
    return plateaus(median_curve(curves)[order], _places(curves, order, axis))


def _pick(flats: tuple[Plateau, ...], number: int) -> Plateau:
    if not -len(flats) <= number < len(flats):
        raise NoValue(f"the curve has {len(flats)} plateaus, number {number} is asked for")
    return flats[number]
