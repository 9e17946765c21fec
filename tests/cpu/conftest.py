"""Runs of these tests write into a folder of their own, never into data/."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from attention.choose import learned_file
from attention.choose.machine import machine_profile
from microbench import paths
from microbench.device.host import HostDevice
from microbench.measure.host import HostBench
from tests.cpu.bare_checkout import bare, checkout  # noqa: F401  fixtures


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An empty data folder that stands for data/, and a cache folder of its own; no machine is known from before."""
    folder = tmp_path / "data"
    folder.mkdir()
    monkeypatch.setattr(paths, "writable_data", lambda: folder)
    monkeypatch.setattr(paths, "data_roots", lambda: [folder])
    monkeypatch.setattr(learned_file, "_kept", lambda: tmp_path / "kept")
    machine_profile.cache_clear()
    yield folder
    machine_profile.cache_clear()


@pytest.fixture(autouse=True)
def _figures_are_closed() -> Iterator[None]:
    yield
    if drawing := sys.modules.get("matplotlib.pyplot"):
        drawing.close("all")


@pytest.fixture(scope="session", autouse=True)
def _compiled_once() -> None:
    """The CPU kernel is on disk, as after `attention bench`: where it is not, torch serves and a warning says so."""
    from attention.variant import by_path

    by_path("host/forward/tiled_online_softmax").prepare()


@pytest.fixture(scope="module")
def device() -> Iterator[HostDevice]:
    """This CPU."""
    opened = HostDevice()
    yield opened
    opened.close()


@pytest.fixture(scope="module")
def bench(device: HostDevice) -> HostBench:
    """What a probe measures this CPU with, quickly."""
    return HostBench(device, quick=True)


@pytest.fixture
def host_machine(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Every choice of attention by one made-up profile without timings, and every reason to warn new."""
    from attention.choose.corrections import Corrections
    from attention.choose.machine import MachineProfile
    from attention.op import plan
    from tests.cpu.attention_profiles import forget_choices, host_profile

    monkeypatch.setattr(plan, "machine_profile", lambda _device: MachineProfile(host_profile()))
    monkeypatch.setattr(plan.learned, "of_machine", lambda _profile: Corrections())
    monkeypatch.setattr(plan.learned, "duels_of_machine", lambda _profile: ())
    monkeypatch.setattr(plan, "_announced", set())
    forget_choices()
    yield
    forget_choices()
