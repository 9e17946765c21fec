"""The two methods against each other, point by point: two compilers that measure one thing give one number."""

from collections.abc import Iterator, Sequence

import numpy as np

from microbench.point import Point
from microbench.probe import Probe
from microbench.results.pool import point_of, pools
from microbench.results.record import Run

# Of the 475 points that both methods measured on two H100s all but four lie closer.
APART = 0.03


def apart(runs: Sequence[Run], probe: Probe) -> Iterator[str]:
    """A sentence for each metric of which the second method differs by more than APART at some point."""
    first, second = (_medians(runs, probe, method) for method in (probe.methods[0], probe.methods[-1]))
    for metric in probe.metrics:
        shared = [key for key in first if key in second and key[0] == metric.name]
        far = {key[1]: second[key] / first[key] - 1 for key in shared if abs(second[key] / first[key] - 1) > APART}
        if far:
            worst = max(far, key=lambda point: abs(far[point]))
            yield (
                f"{probe.name}, {metric.name}: numba gives {far[worst]:+.1%} at {worst}, and differs by more than "
                f"{APART:.0%} at {len(far)} of {len(shared)} points."
            )


def _medians(runs: Sequence[Run], probe: Probe, method: str) -> dict[tuple[str, Point], float]:
    """By metric and point, over the campaigns of the method's best pool."""
    values: dict[tuple[str, Point], list[float]] = {}
    for row in (row for run in next(pools(runs, probe, method), ()) for row in run.records):
        mine = (row.probe, row.method) == (probe.name, method) and row.status != "failed"
        if mine and isinstance(row.value, float):
            values.setdefault((row.metric, point_of(row)), []).append(row.value)
    return {key: float(np.median(found)) for key, found in values.items()}
