"""Runs -> Profile: each probe's constants, reduced from its sweep, one value per campaign. Deterministic to the byte.

For each probe and method the best pool of runs counts (pool.py): a run with all campaigns before a shorter one, that
before a quick or unfinished one; the newest of equals, together with all that measured by the same code.
A constant that is in doubt there (ProfileConstant.doubtful) is taken from the best pool in which it is not.

Campaigns that something disturbed ('busy', 'stolen', 'clock-moved') are set aside where enough others are left.
"""

from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from microbench import files, paths
from microbench.errors import DataError
from microbench.machine import arch
from microbench.machine.cpu import stand_ins
from microbench.point import NoValue
from microbench.probe import Constant, Probe
from microbench.results import record
from microbench.results.committed import shipped
from microbench.results.constant import reduce_constant
from microbench.results.order import in_order
from microbench.results.parts import split
from microbench.results.pool import FULL, Pool, pools, rank
from microbench.results.profile import Profile, read, stem_of
from microbench.results.profile_constant import ProfileConstant
from microbench.results.quiet import lesser
from microbench.results.record import Run
from microbench.results.twins import apart


@dataclass(frozen=True)
class Derived:
    """A profile, and one sentence for each constant that could not be had and each line that could not be read."""

    profile: Profile
    problems: tuple[str, ...]


def gpus() -> list[str]:
    return sorted({file.parent.name for file in record.run_files()})


def derive(gpu: str, probes: Iterable[Probe], board: str | None = None, received: Collection[Path] = ()) -> Derived:
    """The profile of a kind of GPU from its committed runs, or of one `board` of it from all of that board's.

    Without committed runs a kind's profile comes from all there are; `received` ones count as committed, which they
    are to be. 'host' is this CPU, or else another CPU that has
    runs, as Profile.load has it. Raises UnknownGpu where there is no run, DataError where none is readable.
    """
    gpu = _meant(gpu)
    runs, problems = record.read_all(gpu, board=board)
    if not board:
        known = {*shipped([run.path for run in runs]), *received}
        runs = [run for run in runs if run.path in known] or runs
    if not runs:
        raise DataError(f"No run of {gpu} can be read: {next(iter(problems), f'none is of board {board}')}")
    derived = reduce_runs(runs, probes, board)
    return replace(derived, problems=(*problems, *derived.problems))


def settled(run: Run, probes: Iterable[Probe]) -> Profile | None:
    """The profile of the run's board, where the run cannot change it: full runs gave each constant of these probes.

    All constants of a board with four runs take a second, a run of one probe at few points two.
    """
    told, here = run.environment, arch.by_name(run.environment.arch)
    if not told.board or rank(run) == FULL:
        return None
    try:
        profile = read(_place(stem_of(told.gpu, told.board)))
    except DataError:
        return None
    names = {constant.name for probe in probes if probe.runs_on(here) for constant in probe.constants}
    mine = [constant for constant in profile.constants if constant.name in names]
    moved = any(constant.doubtful or lesser(constant.flags) for constant in mine)
    return None if moved or len(mine) < len(names) else profile


def ships(gpu: str) -> bool:
    """False for a kind of GPU of which there are only runs that git does not know: its boards have profiles."""
    return bool(shipped(record.run_files(gpu))) or not boards(gpu)


def boards(gpu: str) -> list[str]:
    """The boards of a kind with a run that git does not know: each has a profile of its own."""
    gpu = _meant(gpu)
    files = record.run_files(gpu)
    own = set(files) - set(shipped(files))
    return sorted({board for file in own if (board := record.board_of(file))})


def _meant(gpu: str) -> str:
    known = gpus()
    if gpu != "host" or gpu in known:
        return gpu
    return next((slug for slug in stand_ins(known) if slug in known), gpu)


def reduce_runs(runs: Sequence[Run], probes: Iterable[Probe], board: str | None = None) -> Derived:
    machine = max(runs, key=lambda run: (rank(run), run.environment.run_id)).environment
    parts = split(runs)
    measured = {name for name, _ in parts}
    constants: list[ProfileConstant] = []
    problems: list[str] = []
    for probe in sorted(probes, key=lambda probe: probe.name):
        if not probe.runs_on(arch.by_name(machine.arch)):
            continue
        if probe.name not in measured:
            problems.extend([f"{probe.name} is in no run."] if probe.constants else [])
            continue
        by_method = {method: parts.get((probe.name, method), ()) for method in probe.methods}
        found = {method: tuple(pools(of_method, probe.since)) for method, of_method in by_method.items()}
        first, *others = probe.methods
        seconds = _twins(probe) if any(part.tried for method in others for part in by_method[method]) else ()
        for constant in (*probe.constants, *seconds):
            try:
                constants.append(_best(found.get(constant.method or first, ()), probe, constant))
            except NoValue as why:
                problems.append(f"{constant.name}, from {probe.name}: {why}.")
        for method in others:
            if found[first] and found[method]:
                problems.extend(apart(probe, found[first][0], found[method][0]))
    constants, disordered = in_order(constants)
    problems.extend(disordered)
    profile = Profile(
        board=board,
        **machine.model_dump(include={"gpu", "name", "arch", "sm_count", "clock_hz", "dram_bytes"}),
        constants=tuple(sorted(constants, key=lambda constant: constant.name)),
    )
    return Derived(profile, tuple(problems))


def stored(profile: Profile) -> bytes:
    """A profile as it lies where `write` puts it; nothing where there is none."""
    try:
        return _place(profile.stem).read_bytes()
    except OSError:
        return b""


def _place(stem: str) -> Path:
    return paths.writable_data() / "profiles" / f"{stem}.json"


def write(profile: Profile) -> Path:
    """Put the profile in its place, whole or not at all. Raises DataError."""
    path = _place(profile.stem)
    try:
        files.put(path, profile.model_dump_json(indent=2, exclude_none=True) + "\n")
    except OSError as error:
        again = f"`{paths.typed('profile')}` writes it again{paths.moved(path)}"
        raise DataError(f"Could not write {path.name}: {error.strerror}; {again}.") from error
    return path


def _twins(probe: Probe) -> Iterator[Constant]:
    """The second method's constants: every one of the first method that the probe does not declare twice itself."""
    declared = {constant.name for constant in probe.constants if constant.method}
    for constant in probe.constants:
        if probe.twin is not None and not constant.method and constant.name not in declared:
            yield replace(constant, method="numba")


def _best(of_pools: Sequence[Pool], probe: Probe, constant: Constant) -> ProfileConstant:
    """The constant of the best pool of runs; if it is in doubt there, of the best one in which it is not."""
    if not of_pools:
        raise NoValue("no point of its sweep was measured")
    first = reduce_constant(of_pools[0], probe, constant)
    if not first.doubtful:
        return first
    for pool in of_pools[1:]:
        with suppress(NoValue):
            other = reduce_constant(pool, probe, constant)
            if not other.doubtful:
                return other
    return first
