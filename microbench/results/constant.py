"""One constant of a profile, from the campaigns of a pool: one value per campaign, those of one clock together."""

import warnings
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from microbench.bounds import LOOP_LIMITED
from microbench.errors import sentence
from microbench.machine.clock import STEP_MHZ
from microbench.point import Curves, Floats, NoValue, Reduced
from microbench.probe import REACHED, Constant, Metric, Probe
from microbench.results.clocks import AGREE, Group, agreeing, groups, of_campaigns, without_moved
from microbench.results.curves import interval
from microbench.results.parts import Campaign, Row
from microbench.results.pool import FULL, Pool, curves, rank
from microbench.results.profile_constant import BELOW_DOCUMENTED, FEW, TWIN_SUFFIX, AtClock, OfBoard, ProfileConstant
from microbench.results.quiet import of_rows, off_clock, quiet_campaigns, quiet_rows, standing
from microbench.results.record import FULL_CAMPAIGNS

# A footprint is the same at every clock, and so is the share of two times.
CLOCKLESS = ("bytes", "ratio")


@dataclass(frozen=True)
class Values:
    """What a constant's rows came to: a value per campaign, the clock of each, and the rows that are behind them."""

    reduced: Reduced
    campaigns: tuple[Campaign, ...]
    steps: tuple[int | None, ...]
    used: tuple[Row, ...]
    there: tuple[Row, ...]  # of `used`, those at the points that gave the values

    @property
    def count(self) -> int:
        return int(np.isfinite(self.reduced.per_campaign).sum())

    def of(self, members: Sequence[int]) -> Floats:
        return self.reduced.per_campaign[list(members)]


def reduce_constant(pool: Pool, probe: Probe, constant: Constant) -> ProfileConstant:
    """The constant of these comparable runs. Raises NoValue."""
    mine = pool.rows(constant.metric)
    good = [row for row in mine if row.record.measured]
    metric = probe.metric(constant.metric)
    unit = constant.unit or metric.unit
    found, members, others = _at_one_clock(good, constant, probe, metric)
    value, low, high = interval(found.of(members))
    n = len(members)
    campaigns = {found.campaigns[member] for member in members}
    behind = [row for row in found.there if row.campaign in campaigns]
    if probe.campaigns == 1:  # a soak, of which each second is a sample
        low, high, n = _of_repeats(behind)
    lower, upper = _bound(behind) if constant.unit in ("", metric.unit) else (None, None)
    below = (BELOW_DOCUMENTED,) if metric.bound.documented and upper and value < REACHED * upper else ()
    looped = any(LOOP_LIMITED in row.record.flags for row in behind)
    gaps = len({row.point for row in mine} - {row.point for row in good})
    return ProfileConstant(
        name=constant.name + (TWIN_SUFFIX if constant.method == "numba" else ""),
        value=value,
        low=low,
        high=high,
        unit=unit,
        n=n,
        runs=tuple(sorted({campaign.run_id for campaign in campaigns})),
        probe=probe.name,
        method=constant.method or probe.methods[0],
        label="lower bound" if below or looped or found.reduced.label == "lower bound" else "measured",
        bound_lower=lower,
        bound_upper=upper,
        bound_why=metric.bound.why if (lower, upper) != (None, None) else "unknown",
        governed_by=metric.governed_by,
        clocks_mhz=_clocks(behind) if probe.methods[0] != "host" else None,
        beside=tuple(_beside(found, group) for group in others),
        boards=_boards(found, members),
        flags=(
            *standing(pool.newest),
            *below,
            *sorted({*found.reduced.flags, *of_rows(behind)}),
            *off_clock(behind, pool.newest),
            *[f"{gaps} points failed"] * bool(gaps),
            *[f"{FEW}{n}"] * (n < FULL_CAMPAIGNS and rank(pool.newest) == FULL and probe.campaigns is None),
        ),
    )


def _at_one_clock(
    good: Sequence[Row], constant: Constant, probe: Probe, metric: Metric
) -> tuple[Values, tuple[int, ...], list[Group]]:
    """The values, the campaigns that are one group of them, and the groups that stand beside it."""
    unit = constant.unit or metric.unit
    found = _of_quiet_rows(good, constant, probe.file)
    if metric.governed_by or unit in CLOCKLESS or probe.methods[0] == "host":
        every = groups([None] * len(found.steps), found.reduced.per_campaign)
        return found, every[0].members if every else (), []
    cycles = unit.startswith("cycles") or "/clk" in unit
    left = without_moved(found.used, found.steps, found.campaigns)
    with suppress(NoValue):
        still = _values(left, constant, probe.file) if len(left) < len(found.used) else found
        if still.count == found.count and not (cycles and _near(still, found)):
            found = still
    every = groups(found.steps, found.reduced.per_campaign)
    if not every:
        return found, (), []
    together = agreeing(every, found.reduced.per_campaign) if cycles else every[:1]
    members = sorted(member for group in together for member in group.members)
    return found, tuple(members), [group for group in every if group not in together]


def _of_quiet_rows(good: Sequence[Row], constant: Constant, file: Path) -> Values:
    """From what nothing disturbed; a whole curve from whole campaigns, for it would end where a hole begins."""
    left = quiet_rows(good)
    found = _values(left, constant, file)
    if len(left) < len(good) and not found.reduced.points:
        return _values(quiet_campaigns(good), constant, file)
    return found


def _near(one: Values, other: Values) -> bool:
    ours, theirs = (interval(values.reduced.per_campaign)[0] for values in (one, other))
    return abs(ours - theirs) <= AGREE * abs(theirs)


def _values(used: Sequence[Row], constant: Constant, file: Path) -> Values:
    found, campaigns = curves(used)
    reduced = _apply(constant, found, file)
    there = tuple(row for row in used if not reduced.points or row.point in reduced.points)
    return Values(reduced, campaigns, tuple(of_campaigns(there, campaigns)), tuple(used), there)


def _apply(constant: Constant, found: Curves, file: Path) -> Reduced:
    if not found.points:
        raise NoValue("no point of its sweep was measured")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)  # NumPy's 'all-NaN slice': a campaign without a value
            return constant.reduce(found)
    except NoValue:
        raise
    except Exception as error:  # a reducer may be a probe's own
        raise NoValue(f"its reducer failed: {sentence(error, file)}") from error


def _of_repeats(behind: Sequence[Row]) -> tuple[float, float, int]:
    """The least, the most and the number of the repeats behind these rows."""
    records = [row.record for row in behind]
    lows, highs = (
        [end for record in records if (end := getattr(record, name)) is not None] for name in ("low", "high")
    )
    return min(lows), max(highs), sum(record.n for record in records)


def _clocks(behind: Sequence[Row]) -> tuple[float, float] | None:
    """The least and the most MHz at which these rows were measured, to a tenth."""
    read = [row.record.clock_mhz for row in behind if row.record.clock_mhz is not None]
    return (round(min(read), 1), round(max(read), 1)) if read else None


def _beside(found: Values, group: Group) -> AtClock:
    value, low, high = interval(found.of(group.members))
    return AtClock(clock_mhz=(group.step or 0) * STEP_MHZ, value=value, low=low, high=high, n=len(group.members))


def _boards(found: Values, members: Sequence[int]) -> tuple[OfBoard, ...]:
    """Each board's own value where there are several."""
    by_board: dict[str, list[int]] = {}
    for member in members:
        by_board.setdefault(found.campaigns[member].board, []).append(member)
    if len(by_board) < 2:
        return ()
    return tuple(
        OfBoard(board=board, value=interval(found.of(own))[0], n=len(own)) for board, own in sorted(by_board.items())
    )


def _bound(behind: Sequence[Row]) -> tuple[float | None, float | None]:
    """The bound that all rows of the newest run share; none where it changes from point to point.

    A bound that was mended since judged the older runs' rows.
    """
    newest = max(row.campaign.run_id for row in behind)
    bounds = {(row.record.bound_lower, row.record.bound_upper) for row in behind if row.campaign.run_id == newest}
    return bounds.pop() if len(bounds) == 1 else (None, None)
