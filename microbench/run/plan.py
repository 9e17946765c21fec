"""What a run measures: one task per campaign, probe, method and point, in an order that drift cannot alias with.

Probes, and the methods and points of each, are shuffled anew in each campaign, so that a machine that warms up or slows
down meets nothing at the same moment every time. The run's id and the campaign's number are the seed: two runs have
different orders, and a run that resumes goes on in the one it had.
"""

import random
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from microbench.machine.arch import CUDA, HOST, Machine
from microbench.point import Point
from microbench.probe import Probe
from microbench.results.record import FULL_CAMPAIGNS, Record, Run

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


@dataclass(frozen=True)
class Plan:
    """The tasks of one run on one machine.

    A second method is held against the first, and is no result of its own: two campaigns show whether both agree.

    lacking    probe -> why its second method cannot be had here; it is not tried
    """

    run_id: str
    probes: tuple[Probe, ...]
    machine: Machine
    campaigns: int = FULL_CAMPAIGNS
    quick: bool = False
    lacking: Mapping[str, str] = field(default_factory=dict)

    @property
    def twin_campaigns(self) -> frozenset[int]:
        """The first one and the middle one; those that are added for what is in doubt have both methods too."""
        return frozenset((0, self.campaigns // 2))

    def tasks(self, campaign: int, only: Iterable[Probe] | None = None) -> tuple[Task, ...]:
        """The tasks of one campaign, those of a probe together; what this machine cannot run is in `unsupported`."""
        wanted = self.probes if only is None else only
        here = [probe for probe in wanted if probe.runs_on(self.machine.arch)]
        order = [probe for probe in here if probe.campaigns is None or campaign < probe.campaigns]
        draw = random.Random(f"{self.run_id} {campaign}")
        draw.shuffle(order)
        found: list[Task] = []
        for probe in order:
            methods = [method for method in probe.methods if not self._left_out(probe, method, campaign)]
            mine = [Task(campaign, probe, method, at) for method in methods for at in probe.points(self.quick)]
            draw.shuffle(mine)
            found.extend(mine)
        return tuple(found)

    def unsupported(self) -> Iterator[tuple[Task, str]]:
        """One task, never run, with its reason, for each probe that this machine lacks, and each second method."""
        for probe in self.probes:
            if not probe.runs_on(self.machine.arch):
                reason = f"needs {_needed(probe)}; {self.machine.gpu} is {self.machine.arch.name}"
                yield Task(0, probe, probe.methods[0], Point()), reason
            elif probe.name in self.lacking:
                yield Task(0, probe, probe.methods[-1], Point()), self.lacking[probe.name]

    def _left_out(self, probe: Probe, method: str, campaign: int) -> bool:
        if method == probe.methods[0]:
            return False
        return probe.name in self.lacking or (campaign < self.campaigns and campaign not in self.twin_campaigns)


def _needed(probe: Probe) -> str:
    if probe.archs == HOST:
        return "a CPU"
    return "an NVIDIA GPU" if set(CUDA) <= set(probe.archs) else " or ".join(probe.archs)


def done(run: Run) -> set[Key]:
    """The tasks that a run has done: what failed without a number is tried again, a number that was refused is not."""
    return {key_of(record) for record in run.records if not record.empty}


def key_of(record: Record) -> Key:
    return (record.campaign, record.probe, record.method, tuple(record.point.items()))
