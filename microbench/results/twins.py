"""The two methods against each other, point by point: two compilers that measure one thing give one number."""

from collections.abc import Iterator

from microbench.point import Point
from microbench.probe import Probe
from microbench.results.curves import median_curve
from microbench.results.pool import Pool, curves

# Of the 475 points that both methods measured on two H100s all but four lie closer.
APART = 0.03


def apart(probe: Probe, first: Pool, second: Pool) -> Iterator[str]:
    """A sentence for each metric of which the second method differs by more than APART at some point."""
    for metric in probe.metrics:
        ours, theirs = (_by_point(pool, metric.name) for pool in (first, second))
        off = {point: theirs[point] / ours[point] - 1 for point in ours if point in theirs}
        far = {point: by for point, by in off.items() if abs(by) > APART}
        if far:
            worst = max(far, key=lambda point: abs(far[point]))
            yield (
                f"{probe.name}, {metric.name}: numba gives {far[worst]:+.1%} at {worst}, and differs by more than "
                f"{APART:.0%} at {len(far)} of {len(off)} points."
            )


def _by_point(pool: Pool, metric: str) -> dict[Point, float]:
    """The median over the campaigns at each point that was measured."""
    found, _ = curves([row for row in pool.rows(metric) if row.record.measured])
    return dict(zip(found.points, median_curve(found).tolist(), strict=True))
