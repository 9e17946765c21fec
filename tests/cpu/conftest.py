"""Runs of these tests write into a folder of their own, never into data/."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from attention import learned_file
from microbench import paths
from tests.cpu.bare_checkout import Checkout, laid_out, with_python


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty data folder that stands for data/, and a cache folder of its own."""
    folder = tmp_path / "data"
    folder.mkdir()
    monkeypatch.setattr(paths, "writable_data", lambda: folder)
    monkeypatch.setattr(paths, "data_roots", lambda: [folder])
    monkeypatch.setattr(learned_file, "_kept", lambda: tmp_path / "kept")
    return folder


@pytest.fixture(scope="session", autouse=True)
def _compiled_once() -> None:
    """The CPU kernel is on disk, as after `attention bench`: where it is not, torch serves and a warning says so."""
    from attention.variant import by_path

    by_path("host/forward/tiled_online_softmax").prepare()


@pytest.fixture
def host_machine(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Every choice of attention by one made-up profile without timings, and every reason to warn new."""
    from attention import op, plan, route
    from attention.corrections import Corrections
    from attention.machine import MachineProfile
    from tests.cpu.attention_profiles import host_profile

    def forget() -> None:
        plan.plan_of.cache_clear()
        plan._pick_of.cache_clear()
        route._route.cache_clear()
        op._torchs_kinds.clear()
        op._cpu_is_torchs = None

    monkeypatch.setattr(plan, "machine_profile", lambda _device: MachineProfile(host_profile()))
    monkeypatch.setattr(plan.learned, "of_machine", lambda _profile: Corrections())
    monkeypatch.setattr(plan.learned, "duels_of_machine", lambda _profile: ())
    monkeypatch.setattr(plan, "_announced", set())
    forget()
    yield
    forget()


@pytest.fixture
def bare(tmp_path: Path) -> Iterator[Checkout]:
    """A checkout on a machine without Python."""
    yield from laid_out(tmp_path)


@pytest.fixture
def checkout(bare: Checkout) -> Checkout:
    """The same on a machine with a Python that is new enough."""
    return with_python(bare)
