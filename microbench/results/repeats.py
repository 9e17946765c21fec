"""How well full runs of one board repeat each other: every run has a profile of its own, and they are held together."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby

from microbench.probe import Probe
from microbench.results import derive
from microbench.results.pool import FULL, rank
from microbench.results.record import Run

# What two runs may differ by, as a share of the smaller: cycles and what is counted per clock, and all else.
CYCLES, OTHER = 0.01, 0.03


@dataclass(frozen=True)
class Repeated:
    """One constant in the runs of a board, oldest first."""

    name: str
    unit: str
    values: tuple[float, ...]

    @property
    def spread(self) -> float:
        """The largest over the smallest, less one."""
        return max(self.values) / min(self.values) - 1

    @property
    def allowed(self) -> float:
        return CYCLES if self.unit.startswith("cycles") or "/clk" in self.unit else OTHER

    @property
    def agrees(self) -> bool:
        return self.spread <= self.allowed


@dataclass(frozen=True)
class Repeats:
    """Runs of one board that were measured by the same sources, and every constant that all of them have.

    missing: the constants that some of the runs have and others do not.
    """

    board: str
    runs: tuple[str, ...]
    constants: tuple[Repeated, ...]
    missing: tuple[str, ...]

    @property
    def apart(self) -> tuple[Repeated, ...]:
        """What does not agree, the widest first."""
        wide = (each for each in self.constants if not each.agrees)
        return tuple(sorted(wide, key=lambda each: -each.spread / each.allowed))

    @property
    def share(self) -> float:
        """Of the constants that agree, of all that any run has."""
        every = len(self.constants) + len(self.missing)
        return (len(self.constants) - len(self.apart)) / every if every else 0.0


def repeats(runs: Sequence[Run], probes: Iterable[Probe], least: int = 3) -> tuple[Repeats, ...]:
    """Each board with so many full runs by the same sources."""
    probes = tuple(probes)
    full = sorted((run for run in runs if rank(run) == FULL and not run.environment.only), key=_same)
    groups = (list(group) for _, group in groupby(full, key=_same))
    return tuple(_together(group, probes) for group in groups if len(group) >= least)


def _same(run: Run) -> tuple[str, str]:
    return run.environment.board, run.environment.sources_sha256 or run.environment.run_id


def _together(runs: Sequence[Run], probes: Sequence[Probe]) -> Repeats:
    runs = sorted(runs, key=lambda run: run.environment.run_id)
    found = [
        {each.name: each for each in derive.reduce_runs([run], probes, run.environment.board).profile.constants}
        for run in runs
    ]
    every = sorted(set().union(*found))
    shared = [name for name in every if all(name in constants for constants in found)]
    return Repeats(
        board=runs[0].environment.board,
        runs=tuple(run.environment.run_id for run in runs),
        constants=tuple(
            Repeated(name, found[0][name].unit, tuple(constants[name].value for constants in found)) for name in shared
        ),
        missing=tuple(name for name in every if name not in shared),
    )
