"""What a run measures: one task per campaign, probe, method and point, in an order that drift cannot alias with.

Probes are shuffled anew in each campaign, so that a machine that warms up or slows down does not meet the same probe at
the same moment every time. The seed is the campaign's number: a run that resumes goes on in the order it had.
"""

import random
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from microbench.machine.arch import CUDA, HOST, Machine
from microbench.point import Point
from microbench.probe import Probe
from microbench.results.record import Record, Run

Key = tuple[int, str, str, tuple[tuple[str, int | float | str], ...]]


@dataclass(frozen=True)
class Task:
    campaign: int
    probe: Probe
    method: str
    point: Point

    @property
    def key(self) -> Key:
        return (self.campaign, self.probe.name, self.method, self.point.values)


def tasks(probes: Iterable[Probe], machine: Machine, campaign: int, quick: bool) -> Iterator[Task]:
    """The tasks of one campaign on this machine; probes that it cannot run are left out (see `unsupported`)."""
    order = [probe for probe in probes if probe.runs_on(machine.arch)]
    random.Random(campaign).shuffle(order)
    for probe in order:
        for method in probe.methods:
            for point in probe.points(quick):
                yield Task(campaign, probe, method, point)


def unsupported(probes: Iterable[Probe], machine: Machine) -> Iterator[tuple[Task, str]]:
    """One task, never run, for each probe that this machine's architecture does not have, and the reason."""
    for probe in probes:
        if not probe.runs_on(machine.arch):
            reason = f"needs {_needed(probe)}; {machine.gpu} is {machine.arch.name}"
            yield Task(0, probe, probe.methods[0], Point()), reason


def _needed(probe: Probe) -> str:
    if probe.archs == HOST:
        return "a CPU"
    return "an NVIDIA GPU" if set(CUDA) <= set(probe.archs) else " or ".join(probe.archs)


def done(run: Run) -> set[Key]:
    """The tasks that a run has done: what failed without a number is tried again, a number that was refused is not."""
    return {key_of(record) for record in run.records if not record.empty}


def key_of(record: Record) -> Key:
    return (record.campaign, record.probe, record.method, tuple(record.point.items()))
