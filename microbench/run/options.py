"""What a run is asked to do."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from microbench.probe import Probe
from microbench.results.doubt import Doubt
from microbench.results.record import FULL_CAMPAIGNS, Run


@dataclass(frozen=True)
class Options:
    device: str  # 'host' or 'cuda:N'
    probes: tuple[Probe, ...]
    folders: tuple[Path, ...] = ()  # more places where workers find probes
    only: tuple[str, ...] = ()  # names; empty for all
    quick: bool = False
    campaigns: int = FULL_CAMPAIGNS
    fresh: bool = False  # never go on with an interrupted run
    wait: bool = True  # for another run on this device
    retries: int = 0  # more campaigns at most, for the probes of constants that `doubted` names
    doubted: Callable[[Run], Sequence[Doubt]] = lambda _: ()

    @property
    def chosen(self) -> tuple[Probe, ...]:
        return tuple(probe for probe in self.probes if not self.only or probe.name in self.only)
