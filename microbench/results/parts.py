"""Runs, split by probe and method: a run has ten thousand records, and no constant may look at all of them again."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from microbench.point import Point
from microbench.results.record import Record, Run


@dataclass(frozen=True, order=True)
class Campaign:
    """One fresh process that measured, and its board: 8 digits of the UUID's hash, '' where that is unknown."""

    run_id: str
    number: int
    board: str


@dataclass(frozen=True)
class Row:
    """A record, whose it is, and where in its sweep."""

    campaign: Campaign
    point: Point
    record: Record


@dataclass(frozen=True, eq=False)  # to compare two would compare all their rows
class Part:
    """What one run says of a probe by one method, in the order in which it was measured."""

    run: Run
    rows: tuple[Row, ...]

    @property
    def tried(self) -> bool:
        """False where the machine cannot do it: all there is then is the reason."""
        return any(row.record.status != "unsupported" for row in self.rows)

    @cached_property
    def codes(self) -> Mapping[Point, set[str]]:
        """By point, the code that gave its numbers; where nobody knows it, this run's own."""
        unknown = self.run.environment.sources_sha256 or self.run.environment.run_id
        found: dict[Point, set[str]] = {}
        for row in self.rows:
            if row.record.status != "failed" and row.record.value is not None:
                found.setdefault(row.point, set()).add(row.record.cubin_sha256 or unknown)
        return found


def split(runs: Iterable[Run]) -> Mapping[tuple[str, str], Sequence[Part]]:
    """The parts of these runs by probe and method, in the runs' order."""
    parts: dict[tuple[str, str], list[Part]] = {}
    points: dict[Point, Point] = {}
    for run in runs:
        for key, rows in _rows(run, points).items():
            parts.setdefault(key, []).append(Part(run, tuple(rows)))
    return parts


def point_of(record: Record) -> Point:
    return Point(tuple(record.point.items()))


def _rows(run: Run, points: dict[Point, Point]) -> dict[tuple[str, str], list[Row]]:
    """By probe and method; equal points are one object, which a dict finds without comparing their axes."""
    told = run.environment
    numbers = {record.campaign for record in run.records}
    campaigns = {number: Campaign(told.run_id, number, told.board) for number in numbers}
    found: dict[tuple[str, str], list[Row]] = {}
    for record in run.records:
        point = point_of(record)
        row = Row(campaigns[record.campaign], points.setdefault(point, point), record)
        found.setdefault((record.probe, record.method), []).append(row)
    return found
