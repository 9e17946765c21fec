"""What the timings on file say: the last comparison by cell, the run that timed every configuration, and the ladder."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from attention.compare.cells import Cell
from attention.timed import timings
from attention.timed.timing import PEER, Timing
from attention.variant import Config, by_path

HOPPER = "sm90a/forward/warp_specialised"
AMPERE = "sm80/forward/software_pipelined"
Q_IN_REGISTERS = "q_in_registers"  # an axis of the Hopper kernel's space, and a rung of its ladder


@dataclass(frozen=True)
class Result:
    """One cell of one run, and everything that was timed on it."""

    cell: Cell
    timings: tuple[Timing, ...]

    def tflops(self, timing: Timing) -> float:
        """Speed, by the cell's FLOPs: packed sequences each count with their own length."""
        return self.cell.flops / timing.seconds / 1e12

    def of(self, variant: str) -> Timing | None:
        """A variant's timing; of several configurations the one that was picked, else the best predicted."""
        found = [timing for timing in self.timings if timing.variant == variant]
        return min(found, key=lambda each: (not each.picked, each.predicted_seconds or math.inf), default=None)

    def fastest(self, variant: str) -> Timing | None:
        """A variant's fastest configuration."""
        return min((each for each in self.timings if each.variant == variant), key=lambda t: t.seconds, default=None)

    def configured(self, variant: str, config: Config) -> Timing | None:
        """A variant's timing with one configuration."""
        wanted = dict(config.values)
        return next((each for each in self.timings if each.variant == variant and each.config == wanted), None)

    @property
    def best_peer(self) -> Timing | None:
        """The fastest of the peers that took this cell."""
        peers = (timing for timing in self.timings if timing.variant.startswith(PEER))
        return min(peers, key=lambda timing: timing.seconds, default=None)

    def ratio(self, variant: str) -> float | None:
        """The best peer's seconds over a variant's: above 1 is faster than every peer."""
        ours, peer = self.of(variant), self.best_peer
        return peer.seconds / ours.seconds if ours and peer else None

    def sustained_ratio(self, variant: str) -> float | None:
        """The same of a second of each alone; None where that was not timed."""
        ours = self.of(variant)
        peers = [each.sustained_seconds for each in self.timings if each.variant.startswith(PEER)]
        least = min((seconds for seconds in peers if seconds is not None), default=None)
        return least / ours.sustained_seconds if least and ours and ours.sustained_seconds else None


@dataclass(frozen=True)
class Step:
    """A rung: what it adds to the one below, one idea where all were timed; of `Climb.without`, what it lacks."""

    ideas: tuple[str, ...]
    timing: Timing


@dataclass(frozen=True)
class Climb:
    """The ladder of one cell: rungs upwards, and the whole kernel without one idea at a time."""

    cell: Cell
    tile: Config
    rungs: tuple[Step, ...]
    without: tuple[Step, ...]

    def tflops(self, step: Step) -> float:
        """Speed, by the cell's FLOPs."""
        return self.cell.flops / step.timing.seconds / 1e12

    def gain(self, idea: str) -> float | None:
        """The seconds of the rung below over those of the rung that adds an idea; None where no rung does."""
        for below, step in zip(self.rungs, self.rungs[1:], strict=False):
            if step.ideas == (idea,):
                return below.timing.seconds / step.timing.seconds
        return None

    def lost_without(self, idea: str) -> float | None:
        """The seconds of the whole kernel without an idea over those with it; None where that was not timed."""
        top = self.rungs[-1].timing.seconds
        return next((step.timing.seconds / top for step in self.without if step.ideas == (idea,)), None)


def last_run(gpu: str) -> tuple[Result, ...]:
    """The cells of the last comparison on a GPU of the grid and beyond, each of the last that has it; none without.

    A run of one of both says nothing of the other's cells. Ratios are of one run in each cell.
    """
    runs = _runs(gpu)
    both = max(
        (run for run, rows in runs.items() if len({row.grid for row in rows}) > 1), default=max(runs, default="")
    )
    found: dict[Cell, Result] = {}
    for run in sorted(run for run in runs if run >= both):
        found |= {each.cell: each for each in by_cell(runs[run])}
    return tuple(found.values())


def every_configuration(gpu: str, variant: str = HOPPER) -> tuple[Result, ...]:
    """The cells of the last run that timed several configurations of a variant beside its peers; none where no run did.

    Of few queries several are timed in each run, for the chooser: those cells are left out.
    """
    runs = _runs(gpu)
    for _, rows in sorted(runs.items(), reverse=True):
        found = tuple(each for each in by_cell(rows) if not each.cell.few)
        if any(each.best_peer and sum(row.variant == variant for row in each.timings) > 1 for each in found):
            return found
    return ()


def _runs(gpu: str) -> dict[str, list[Timing]]:
    """The rows of each comparison on a GPU, by its name."""
    found: dict[str, list[Timing]] = {}
    for row in timings.read(gpu)[0]:
        if row.run:
            found.setdefault(row.run, []).append(row)
    return found


def by_cell(rows: Iterable[Timing]) -> tuple[Result, ...]:
    """Timings together with those of the same problem, in the order in which they were measured."""
    found: dict[Cell, list[Timing]] = {}
    for row in rows:
        found.setdefault(Cell(row.problem, row.lengths, row.grid), []).append(row)
    return tuple(Result(cell, tuple(timed)) for cell, timed in found.items())


def ladder(gpu: str, variant: str = HOPPER) -> tuple[Climb, ...]:
    """The last ladder of each cell."""
    axes = [axis for axis, _ in by_path(variant).space if axis != Q_IN_REGISTERS]
    rows = (row for row in timings.read(f"{gpu}-ladder")[0] if row.variant == variant)
    return tuple(climb for each in by_cell(rows) if (climb := _climb(each, axes)) is not None)


def _climb(result: Result, axes: Sequence[str]) -> Climb | None:
    """Rungs as they were measured: each adds to the one before, and what does not is the whole without one idea."""
    last = max(row.run or "" for row in result.timings)
    rows = {ideas_of(row, axes): row for row in result.timings if row.run == last}
    if frozenset() not in rows:
        return None
    rungs, ideas = [Step((), rows[frozenset()])], frozenset[str]()
    for more, row in rows.items():
        if ideas < more:
            rungs.append(Step(tuple(sorted(more - ideas)), row))
            ideas = more
    without = (Step((idea,), rows[ideas - {idea}]) for idea in sorted(ideas) if ideas - {idea} in rows)
    tile = Config(
        tuple((axis, value) for axis, value in rungs[0].timing.config.items() if axis in (*axes, Q_IN_REGISTERS))
    )
    return Climb(result.cell, tile, tuple(rungs), tuple(without))


def ideas_of(timing: Timing, axes: Sequence[str]) -> frozenset[str]:
    """What a configuration switches on besides its tile."""
    return frozenset(name for name, value in timing.config.items() if value and name not in axes)


def mean(ratios: Iterable[float]) -> float:
    """The geometric mean."""
    found = list(ratios)
    return math.exp(sum(map(math.log, found)) / len(found))
