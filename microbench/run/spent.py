"""Where the time of a run went, from its rows and its last line."""

from collections import Counter

from microbench.results.record import Run

SHOWN = 6


def by_probe(run: Run) -> dict[str, float]:
    """Seconds of measuring each probe, the longest first: a point's metrics share its time."""
    points = {(row.campaign, row.probe, row.method, tuple(row.point.items())): row.seconds for row in run.records}
    seconds: Counter[str] = Counter()
    for (_, probe, *_), spent in points.items():
        seconds[probe] += spent or 0  # type: ignore[assignment]  # a Counter of seconds
    return dict(seconds.most_common())


def told(run: Run) -> str | None:
    """One line: all of it, compiling, starting workers, each probe; None where the run came to no end."""
    if run.spent is None:
        return None
    measured, spent = by_probe(run), run.spent
    total = sum(measured.values())
    probes = ", ".join(f"{name} {seconds:.1f}" for name, seconds in list(measured.items())[:SHOWN])
    parts = [f"compiling {spent.building_s:.1f}", f"starting workers {spent.starting_s:.1f}"]
    parts.append(f"measuring {total:.1f} ({probes}{', ...' if len(measured) > SHOWN else ''})")
    # Rows of an earlier session are in no wall time of this one.
    rest = spent.wall_s - spent.building_s - spent.starting_s - total
    parts += [f"the rest {rest:.1f}"] if rest >= 0 else ["part of it in an earlier session"]
    return f"Time:    {spent.wall_s:.1f} s: {', '.join(parts)}"
