"""Runs -> Profile: each probe's constants, reduced from its sweep, one value per campaign. Deterministic to the byte.

For each probe the best run that holds it counts: a finished full run before a partial one (`--only`, fewer campaigns),
that before a quick one, and an unfinished one last; the newest of equals. A constant from a lesser run carries a flag.
A constant that is in doubt there (ProfileConstant.doubtful) is taken from the best run in which it is not.

Campaigns that something disturbed ('busy', 'stolen', 'clock-moved') are set aside where enough others are left.
"""

import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from microbench import files, paths
from microbench.errors import DataError, sentence
from microbench.machine import arch
from microbench.machine.cpu import stand_ins
from microbench.point import Curves, NoValue, Point, Reduced
from microbench.probe import REACHED, Constant, Probe
from microbench.results import record
from microbench.results.curves import interval
from microbench.results.order import in_order
from microbench.results.profile import BELOW_DOCUMENTED, TWIN_SUFFIX, Profile, ProfileConstant
from microbench.results.record import DISTURBANCES, FULL_CAMPAIGNS, Record, Run

# Fewer campaigns than this show no interval: then the disturbed ones count too, and the constant carries their flag.
FEWEST_QUIET = 2


@dataclass(frozen=True)
class Derived:
    """A profile, and one sentence for each constant that could not be had and each line that could not be read."""

    profile: Profile
    problems: tuple[str, ...]


def gpus() -> list[str]:
    return sorted({file.parent.name for file in record.run_files()})


def derive(gpu: str, probes: Iterable[Probe]) -> Derived:
    """The profile of `gpu` from its runs. Raises UnknownGpu where there is none, DataError where none is readable.

    'host' is this CPU, or else another CPU that has runs, as Profile.load has it.
    """
    gpu = _meant(gpu)
    runs, problems = record.read_all(gpu)
    if not runs:
        raise DataError(f"No run of {gpu} can be read: {problems[0]}")
    derived = reduce_runs(runs, probes)
    return replace(derived, problems=(*problems, *derived.problems))


def _meant(gpu: str) -> str:
    known = gpus()
    if gpu != "host" or gpu in known:
        return gpu
    return next((slug for slug in stand_ins(known) if slug in known), gpu)


def reduce_runs(runs: Sequence[Run], probes: Iterable[Probe]) -> Derived:
    best_first = sorted(runs, key=lambda run: (_rank(run), run.environment.run_id), reverse=True)
    machine = best_first[0].environment
    constants: list[ProfileConstant] = []
    problems: list[str] = []
    for probe in sorted(probes, key=lambda probe: probe.name):
        if not probe.runs_on(arch.by_name(machine.arch)):
            continue
        holding = [run for run in best_first if any(row.probe == probe.name for row in run.records)]
        if not holding:
            problems.extend([f"{probe.name} is in no run."] if probe.constants else [])
            continue
        seconds = _twins(probe) if any(map(_second_method(probe), holding)) else ()
        for constant in (*probe.constants, *seconds):
            try:
                constants.append(_best(holding, probe, constant))
            except NoValue as why:
                problems.append(f"{constant.name}, from {probe.name}: {why}.")
    constants, disordered = in_order(constants)
    problems.extend(disordered)
    profile = Profile(
        **machine.model_dump(include={"gpu", "name", "arch", "sm_count", "clock_hz", "dram_bytes"}),
        constants=tuple(sorted(constants, key=lambda constant: constant.name)),
    )
    return Derived(profile, tuple(problems))


def stored(gpu: str) -> bytes:
    """The profile of `gpu` as it lies where `write` puts it; nothing where there is none."""
    try:
        return _place(gpu).read_bytes()
    except OSError:
        return b""


def _place(gpu: str) -> Path:
    return paths.writable_data() / "profiles" / f"{gpu}.json"


def write(profile: Profile) -> Path:
    """Put the profile in its place, whole or not at all. Raises DataError."""
    path = _place(profile.gpu)
    try:
        files.put(path, profile.model_dump_json(indent=2, exclude_none=True) + "\n")
    except OSError as error:
        again = f"`{paths.typed('profile')}` writes it again{paths.moved(path)}"
        raise DataError(f"Could not write {path.name}: {error.strerror}; {again}.") from error
    return path


def _rank(run: Run) -> int:
    told = run.environment
    if not run.finished:
        return 0
    if told.quick:
        return 1
    return 2 if told.only or told.campaigns < FULL_CAMPAIGNS else 3


def _standing(run: Run) -> tuple[str, ...]:
    """Flags that tell a reader about the run that a constant comes from."""
    told = run.environment
    few = f"{told.campaigns} campaigns" if told.campaigns < FULL_CAMPAIGNS and not told.quick else ""
    return tuple(filter(None, ("quick" if told.quick else "", few, "" if run.finished else "unfinished")))


def _twins(probe: Probe) -> Iterator[Constant]:
    """The second method's constants: every one of the first method that the probe does not declare twice itself."""
    declared = {constant.name for constant in probe.constants if constant.method}
    for constant in probe.constants:
        if probe.twin is not None and not constant.method and constant.name not in declared:
            yield replace(constant, method="numba")


def _second_method(probe: Probe) -> Callable[[Run], bool]:
    """Whether a run tried the second method; where that cannot be had it has one row of this probe, with the reason."""
    first = probe.methods[0]

    def tried(run: Run) -> bool:
        mine = (row for row in run.records if row.probe == probe.name and row.method != first)
        return any(row.status != "unsupported" for row in mine)

    return tried


def _best(best_first: Sequence[Run], probe: Probe, constant: Constant) -> ProfileConstant:
    """The constant of the best run; if it is in doubt there, of the best run in which it is not."""
    first = _reduce(best_first[0], probe, constant)
    if not first.doubtful:
        return first
    for run in best_first[1:]:
        with suppress(NoValue):
            other = _reduce(run, probe, constant)
            if not other.doubtful:
                return other
    return first


def _reduce(run: Run, probe: Probe, constant: Constant) -> ProfileConstant:
    method = constant.method or probe.methods[0]
    mine = [
        row
        for row in run.records
        if (row.probe, row.method, row.metric) == (probe.name, method, constant.metric) and row.status != "unsupported"
    ]
    same_clocks = _same_clocks(mine)
    used = _quiet_rows(same_clocks)
    curves = _curves(used)
    reduced = _apply(constant, curves, probe.file)
    if reduced.point is None and used != same_clocks:  # a whole curve: one with holes would end where a hole begins
        used = _quiet_campaigns(same_clocks)
        curves = _curves(used)
        reduced = _apply(constant, curves, probe.file)
    value, low, high = interval(reduced.per_campaign)
    there = [row for row in used if reduced.point is None or _point(row) == reduced.point]
    metric = probe.metric(constant.metric)
    lower, upper = _bound(there) if constant.unit in ("", metric.unit) else (None, None)
    gaps = len({_point(row) for row in mine}) - len(curves.points)
    below = (BELOW_DOCUMENTED,) if metric.bound.documented and upper and value < REACHED * upper else ()
    return ProfileConstant(
        name=constant.name + (TWIN_SUFFIX if constant.method == "numba" else ""),
        value=value,
        low=low,
        high=high,
        unit=constant.unit or metric.unit,
        n=int(np.isfinite(reduced.per_campaign).sum()),
        runs=(run.environment.run_id,),
        probe=probe.name,
        method=method,
        label="lower bound" if below or reduced.label == "lower bound" else "measured",
        bound_lower=lower,
        bound_upper=upper,
        bound_why=metric.bound.why if (lower, upper) != (None, None) else "unknown",
        flags=(
            *_standing(run),
            *below,
            *sorted({*reduced.flags, *_flags(there)}),
            *[f"{gaps} points failed"] * bool(gaps),
        ),
    )


def _apply(constant: Constant, curves: Curves, file: Path) -> Reduced:
    if not curves.points:
        raise NoValue("no point of its sweep was measured")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)  # NumPy's 'all-NaN slice': a campaign without a value
            return constant.reduce(curves)
    except NoValue:
        raise
    except Exception as error:  # a reducer may be a probe's own
        raise NoValue(f"its reducer failed: {sentence(error, file)}") from error


def _by_point(rows: Sequence[Record]) -> Iterable[list[Record]]:
    found: dict[Point, list[Record]] = {}
    for row in rows:
        found.setdefault(_point(row), []).append(row)
    return found.values()


def _same_clocks(rows: Sequence[Record]) -> list[Record]:
    """At each point the throttled campaigns or the others, whichever are more: two clocks are never averaged."""
    kept: list[Record] = []
    for here in _by_point(rows):
        ok = [row for row in here if row.status == "ok"]
        throttled = [row for row in here if row.status == "throttled"]
        kept.extend(ok if len(ok) >= len(throttled) else throttled)
    return kept


def _quiet_rows(rows: Sequence[Record]) -> list[Record]:
    """At each point the rows that nothing disturbed, or all where those are fewer than FEWEST_QUIET."""
    kept: list[Record] = []
    for here in _by_point(rows):
        quiet = [row for row in here if not row.disturbed]
        kept.extend(quiet if len(quiet) >= FEWEST_QUIET else here)
    return kept


def _quiet_campaigns(rows: Sequence[Record]) -> list[Record]:
    """The campaigns of which less than half was disturbed, or all where those are fewer than FEWEST_QUIET."""
    quiet = set()
    for campaign in {row.campaign for row in rows}:
        here = [row.disturbed for row in rows if row.campaign == campaign]
        if 2 * sum(here) < len(here):
            quiet.add(campaign)
    return [row for row in rows if row.campaign in quiet] if len(quiet) >= FEWEST_QUIET else list(rows)


def _flags(rows: Sequence[Record]) -> Iterator[str]:
    """The rows' flags; a disturbance of less than half of them with its count, 'busy in 3 of 296 rows'."""
    for flag in sorted({flag for row in rows for flag in row.flags}):
        count = sum(flag in row.flags for row in rows)
        few = flag in DISTURBANCES and 2 * count < len(rows)
        yield f"{flag} in {count} of {len(rows)} rows" if few else flag


def _curves(rows: Sequence[Record]) -> Curves:
    points = tuple(dict.fromkeys(map(_point, rows)))
    campaigns = sorted({row.campaign for row in rows})
    values = np.full((len(campaigns), len(points)), np.nan)
    for row in rows:
        values[campaigns.index(row.campaign), points.index(_point(row))] = row.value
    return Curves(points, values)


def _point(row: Record) -> Point:
    return Point(tuple(row.point.items()))


def _bound(rows: Sequence[Record]) -> tuple[float | None, float | None]:
    """The bound that all these rows share; none where it changes from point to point."""
    bounds = {(row.bound_lower, row.bound_upper) for row in rows}
    return bounds.pop() if len(bounds) == 1 else (None, None)
