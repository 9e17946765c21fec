"""Campaigns that ran at one clock, and those that did not: two clocks are never mixed in a number that depends on one.

A quantity in cycles inside the SM is the same at every clock; which one that is, the numbers say: groups that agree
within AGREE are one. Where power sets the clock, the clock is a part of the result, and there are no groups.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median_low

import numpy as np

from microbench.machine.clock import step
from microbench.point import Floats
from microbench.results.parts import Campaign, Row

AGREE = 0.003


@dataclass(frozen=True)
class Group:
    """Campaigns of one clock, as positions among all, and that clock: a step's number, None where none was read."""

    step: int | None
    members: tuple[int, ...]


def of_campaigns(rows: Sequence[Row], campaigns: Sequence[Campaign]) -> list[int | None]:
    """The clock's step of each campaign: the median over these rows, of two the lower: some row ran at it."""
    read: dict[Campaign, list[float]] = {campaign: [] for campaign in campaigns}
    for row in rows:
        if row.record.clock_mhz is not None:
            read[row.campaign].append(row.record.clock_mhz)
    return [step(median_low(read[each])) if read[each] else None for each in campaigns]


def groups(steps: Sequence[int | None], per_campaign: Floats) -> list[Group]:
    """The campaigns that have a value by their clock: most members first, of equals the higher clock."""
    found: dict[int | None, list[int]] = {}
    for position, at in enumerate(steps):
        if np.isfinite(per_campaign[position]):
            found.setdefault(at, []).append(position)
    every = [Group(at, tuple(members)) for at, members in found.items()]
    return sorted(every, key=lambda group: (len(group.members), group.step or 0), reverse=True)


def agreeing(every: Sequence[Group], per_campaign: Floats) -> list[Group]:
    """The first group, and each whose median lies within AGREE of its median."""

    def median(group: Group) -> float:
        return float(np.median(per_campaign[list(group.members)]))

    first = median(every[0])
    return [group for group in every if abs(median(group) - first) <= AGREE * abs(first)]


def without_moved(rows: Sequence[Row], steps: Sequence[int | None], campaigns: Sequence[Campaign]) -> list[Row]:
    """The rows that ran at their own campaign's clock: after a load that hit the power cap an H100 ran 6 % faster."""
    at = dict(zip(campaigns, steps, strict=True))
    return [row for row in rows if row.record.clock_mhz is None or step(row.record.clock_mhz) == at[row.campaign]]
