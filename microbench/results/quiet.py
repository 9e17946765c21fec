"""What disturbed the rows of a constant: the quiet ones among them, and the flags that a reader is told."""

from collections.abc import Iterable, Iterator, Sequence

from microbench.machine.clock import is_off
from microbench.point import Point
from microbench.results.parts import Row
from microbench.results.record import DISTURBANCES, FULL_CAMPAIGNS, Run

# Fewer campaigns than this show no interval: then the disturbed ones count too, and the constant carries their flag.
FEWEST_QUIET = 2
OFF_CLOCK = "off-clock"
# What NVML said of a clock that was measured is no flag of a constant. The second stood in runs of version 1.
NOTES = ("throttled:", "clock above the driver's maximum")


def quiet_rows(rows: Sequence[Row]) -> list[Row]:
    """At each point the rows that nothing disturbed, or all where those are fewer than FEWEST_QUIET."""
    kept: list[Row] = []
    for here in _by_point(rows):
        quiet = [row for row in here if not row.record.disturbed]
        kept.extend(quiet if len(quiet) >= FEWEST_QUIET else here)
    return kept


def quiet_campaigns(rows: Sequence[Row]) -> list[Row]:
    """The campaigns of which less than half was disturbed, or all where those are fewer than FEWEST_QUIET."""
    quiet = set()
    for campaign in {row.campaign for row in rows}:
        here = [row.record.disturbed for row in rows if row.campaign == campaign]
        if 2 * sum(here) < len(here):
            quiet.add(campaign)
    return [row for row in rows if row.campaign in quiet] if len(quiet) >= FEWEST_QUIET else list(rows)


def standing(run: Run) -> tuple[str, ...]:
    """Flags that tell a reader about the runs that a constant comes from, of which `run` is the newest."""
    told = run.environment
    few = f"{told.campaigns} campaigns" if told.campaigns < FULL_CAMPAIGNS and not told.quick else ""
    return tuple(filter(None, ("quick" if told.quick else "", few, "" if run.finished else "unfinished")))


def lesser(flags: Sequence[str]) -> bool:
    """True where these flags of a constant say that no full run gave it: see `standing`."""
    return any(flag in ("quick", "unfinished") or flag.endswith(" campaigns") for flag in flags)


def of_rows(rows: Sequence[Row]) -> Iterator[str]:
    """The rows' flags; a disturbance of less than half of them with its count, 'busy in 3 of 296 rows'."""
    for flag in sorted({flag for row in rows for flag in row.record.flags}):
        if flag.startswith(NOTES):
            continue
        count = sum(flag in row.record.flags for row in rows)
        few = flag in DISTURBANCES and 2 * count < len(rows)
        yield f"{flag} in {count} of {len(rows)} rows" if few else flag


def off_clock(rows: Sequence[Row], run: Run) -> Iterator[str]:
    """OFF_CLOCK where most rows ran at another clock than the board's nominal one."""
    told = run.environment
    if told.arch != "host" and 2 * sum(is_off(row.record.clock_mhz, told.clock_hz) for row in rows) > len(rows):
        yield OFF_CLOCK


def _by_point(rows: Sequence[Row]) -> Iterable[list[Row]]:
    found: dict[Point, list[Row]] = {}
    for row in rows:
        found.setdefault(row.point, []).append(row)
    return found.values()
