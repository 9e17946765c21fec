"""Which campaigns may stand together: those of a machine's comparable runs that measured a probe by the same code.

A later run adds its campaigns to an earlier one's, on this board or on another of its kind. A probe whose kernel has
changed since is another instrument: then the newest run's campaigns count alone. The code is the cubin's hash; a row
of a CPU has none, and there it is the hash of all sources.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from microbench.point import Curves, Point
from microbench.probe import Constant, Probe
from microbench.results.record import FULL_CAMPAIGNS, Record, Run

FULL = 3  # the rank of a run with all its campaigns


@dataclass(frozen=True, order=True)
class Campaign:
    """One fresh process that measured, and its board: 8 digits of the UUID's hash, '' where that is unknown."""

    run_id: str
    number: int
    board: str


@dataclass(frozen=True)
class Row:
    """A record, and whose it is."""

    campaign: Campaign
    record: Record

    @property
    def point(self) -> Point:
        return point_of(self.record)


def point_of(record: Record) -> Point:
    return Point(tuple(record.point.items()))


def rank(run: Run) -> int:
    """How much a run counts: one with all campaigns before one with fewer, that before a quick or unfinished one."""
    told = run.environment
    if not run.finished:
        return 0
    if told.quick:
        return 1
    return FULL - 1 if told.campaigns < FULL_CAMPAIGNS else FULL


def pools(runs: Sequence[Run], probe: Probe, method: str) -> Iterator[tuple[Run, ...]]:
    """The runs in which the probe measured something, those of one pool together: the best pool first.

    In a pool the newest run is the first.
    """
    left = [run for run in runs if _codes(run, probe, method)]
    left.sort(key=lambda run: (rank(run), run.environment.run_id), reverse=True)
    while left:
        codes = _codes(left[0], probe, method)
        together = [run for run in left if rank(run) == rank(left[0]) and _same(codes, _codes(run, probe, method))]
        yield tuple(together)
        left = [run for run in left if run not in together]


def rows(pool: Sequence[Run], probe: Probe, constant: Constant) -> list[Row]:
    """What these runs say of a constant, but for what their machines cannot do."""
    wanted = (probe.name, constant.method or probe.methods[0], constant.metric)
    return [
        Row(Campaign(run.environment.run_id, record.campaign, run.environment.board), record)
        for run in reversed(pool)
        for record in run.records
        if (record.probe, record.method, record.metric) == wanted and record.status != "unsupported"
    ]


def curves(of: Sequence[Row]) -> tuple[Curves, tuple[Campaign, ...]]:
    """The rows as curves, and whose each is, oldest first."""
    points = tuple(dict.fromkeys(row.point for row in of))
    campaigns = tuple(sorted({row.campaign for row in of}))
    at_campaign, at_point = ({each: i for i, each in enumerate(every)} for every in (campaigns, points))
    values = np.full((len(campaigns), len(points)), np.nan)
    for row in of:
        values[at_campaign[row.campaign], at_point[row.point]] = row.record.value
    return Curves(points, values), campaigns


def _codes(run: Run, probe: Probe, method: str) -> dict[Point, set[str]]:
    """By point, the code that gave its numbers; where nobody knows it, this run's own."""
    unknown = run.environment.sources_sha256 or run.environment.run_id
    found: dict[Point, set[str]] = {}
    for row in run.records:
        if (row.probe, row.method, row.status != "failed") == (probe.name, method, True) and row.value is not None:
            found.setdefault(point_of(row), set()).add(row.cubin_sha256 or unknown)
    return found


def _same(codes: dict[Point, set[str]], others: dict[Point, set[str]]) -> bool:
    return codes.keys() == others.keys() and all(codes[point] & others[point] for point in codes)
