"""A machine with an H200 whose campaigns are timed as a test scripts them: what a candidate takes, and what fails."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import torch

from attention.campaign import timing
from attention.campaign.plan import Job
from attention.campaign.posed import Posed, parse
from attention.campaign.rows import TileTiming
from attention.choose.machine import MachineProfile
from attention.variant import Config
from microbench.compile import Source
from microbench.device import cuda
from microbench.machine import nvml
from microbench.results.profile import Profile
from smscope import campaigning, cli
from tests.cpu.campaign_rows import GPU, ONE, OTHER
from tests.cpu.commands import called
from tests.cpu.scripted_device import ScriptedDevice

H200 = Profile.load(GPU)
HERE = nvml.Gpu(0, "NVIDIA H200", 141 << 30, (9, 0), False)
SMALL = (ONE, OTHER, parse("decode 4 8 8 1 2048 128 bf16"))


@dataclass
class Scripted:
    """The GPU: seconds of a configuration and of a peer, and how many problems it times before it is interrupted."""

    seconds: Callable[[Posed, Config], float] = lambda posed, config: 1e-3 * (1 + sum(v for _, v in config.values) % 7)
    peers_s: dict[str, float] = field(default_factory=dict)  # of those that it refuses, none
    door_s: float = 1e-3  # of a function that users call
    dies_after: int | None = None
    timed: list[str] = field(default_factory=list)
    seeds: list[str] = field(default_factory=list)
    compiled: int = 0
    failure: str | None = None

    def time(self, device: object, job: Job, seed: str) -> tuple[tuple[TileTiming, ...], tuple[str, ...]]:
        if len(self.timed) == self.dies_after:
            raise KeyboardInterrupt
        self.timed.append(str(job.posed))
        self.seeds.append(seed)
        ours = (
            TileTiming(
                variant=variant.path,
                config=dict(config.values),
                cubin_sha256="0" * 64,
                picked=(variant, config) in job.picked,
                **self._samples(None if self.failure else self.seconds(job.posed, config), self.failure),
            )
            for variant, config in job.tiles
        )
        peers = (
            TileTiming(variant=peer.name, config={}, **self._samples(self.peers_s.get(peer.name), "it does not"))
            for peer in job.peers
        )
        doors = (
            TileTiming(variant=each.name, config={}, names=each.names, **self._samples(self.door_s, None))
            for each in job.doors
        )
        return (*ours, *peers, *doors), ("throttled:power-cap",)

    def _samples(self, seconds: float | None, failure: str | None) -> dict[str, Any]:
        conditions = {"clock_mhz": (1700.0,) * 3, "power_w": (600.0, None, 610.0)}
        return conditions | ({"failure": failure} if seconds is None else {"seconds": (seconds,) * 3})


@pytest.fixture(name="gpu")
def machine_of_campaigns(data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Scripted]:
    """A machine with an H200, which times three problems of set A."""
    scripted = Scripted()

    def compile_together(sources: Sequence[Source]) -> Any:
        scripted.compiled += len(sources)
        return type("Done", (), {"refused": ()})()

    monkeypatch.setenv("SMSCOPE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(nvml, "visible_gpus", lambda: [HERE])
    monkeypatch.setattr(nvml, "facts", lambda gpu: type("Facts", (), {"driver": "580.1"})())
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "current_device", lambda: 0)
    monkeypatch.setattr(cuda, "CudaDevice", lambda index: ScriptedDevice())
    monkeypatch.setattr(campaigning, "machine_profile", lambda device: MachineProfile(H200))
    monkeypatch.setattr(campaigning.set_a, "problems", lambda: SMALL)
    monkeypatch.setattr(campaigning, "compile_together", compile_together)
    monkeypatch.setattr(timing, "timed", scripted.time)
    yield scripted


def campaign(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    """What `smscope campaign` says."""
    return called(capsys, cli.main, "campaign", *arguments)
