"""Which campaigns may stand together: those of a machine's comparable runs that measured a probe by the same code.

A later run adds its campaigns to an earlier one's, on this board or on another of its kind. A probe whose kernel has
changed since is another instrument: then the newest run's campaigns count alone. The code is the cubin's hash; a row
of a CPU has none, and there it is the hash of all sources.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from microbench.point import Curves
from microbench.results.parts import Campaign, Part, Row
from microbench.results.record import FULL_CAMPAIGNS, Run

FULL = 3  # the rank of a run with all its campaigns


@dataclass(frozen=True)
class Pool:
    """What comparable runs say of a probe by one method, the newest run first."""

    parts: tuple[Part, ...]

    @property
    def newest(self) -> Run:
        return self.parts[0].run

    def rows(self, metric: str) -> Sequence[Row]:
        """What they say of a metric, the oldest run first, but for what their machines cannot do."""
        return self._by_metric.get(metric, ())

    @cached_property
    def _by_metric(self) -> Mapping[str, Sequence[Row]]:
        found: dict[str, list[Row]] = {}
        for row in (row for part in reversed(self.parts) for row in part.rows):
            if row.record.status != "unsupported":
                found.setdefault(row.record.metric, []).append(row)
        return found


def rank(run: Run) -> int:
    """How much a run counts: one with all campaigns before one with fewer, that before a quick or unfinished one."""
    told = run.environment
    if not run.finished:
        return 0
    if told.quick:
        return 1
    return FULL - 1 if told.campaigns < FULL_CAMPAIGNS else FULL


def pools(parts: Sequence[Part], since: str = "") -> Iterator[Pool]:
    """The runs' parts of a probe in which something was measured, those of one pool together: the best pool first.

    since: of the probe; runs before it and after it are no pool.
    """
    left = [part for part in parts if part.codes]
    left.sort(key=lambda part: (rank(part.run), part.run.environment.run_id), reverse=True)
    while left:
        first = left[0]
        alike = [part for part in left if rank(part.run) == rank(first.run) and _same_code(first, part)]
        together = [part for part in alike if (_id(part) >= since) == (_id(first) >= since)]
        yield Pool(tuple(together))
        left = [part for part in left if part not in together]


def _id(part: Part) -> str:
    return part.run.environment.run_id


def curves(of: Sequence[Row]) -> tuple[Curves, tuple[Campaign, ...]]:
    """The rows as curves, and whose each is, oldest first."""
    points = tuple(dict.fromkeys(row.point for row in of))
    campaigns = tuple(sorted({row.campaign for row in of}))
    at_campaign, at_point = ({each: i for i, each in enumerate(every)} for every in (campaigns, points))
    values = np.full((len(campaigns), len(points)), np.nan)
    for row in of:
        values[at_campaign[row.campaign], at_point[row.point]] = row.record.value
    return Curves(points, values), campaigns


def _same_code(one: Part, other: Part) -> bool:
    """True where both measured the same points, each by code that they share."""
    return one.codes.keys() == other.codes.keys() and all(one.codes[point] & other.codes[point] for point in one.codes)
