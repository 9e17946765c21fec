"""A notebook opens the machine that was asked for, else the reader's own, else another one, and says which."""

from pathlib import Path

import pytest

from microbench.errors import UnknownGpu
from microbench.machine.nvml import Gpu
from microbench.results import this_machine
from microbench.results.profile import Profile
from tests.cpu.attention_profiles import saved

OWN = "host-mine-4c"


@pytest.fixture(autouse=True)
def _machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(this_machine, "host_slug", lambda: OWN)
    monkeypatch.setattr(this_machine, "visible_gpus", list)


def measured(data: Path, *slugs: str) -> None:
    for slug in slugs:
        (data / "runs" / slug).mkdir(parents=True)
        (data / "runs" / slug / "r.jsonl").touch()
        saved(data, Profile(gpu=slug, name=slug, arch="host", sm_count=2))


def test_the_readers_own_machine_is_opened_by_default(data: Path) -> None:
    measured(data, "h100-sxm-80gb", "host-another-2c", OWN)
    assert this_machine.opened() == this_machine.Opened(OWN, f"This is {OWN}, the machine that this notebook runs on.")


def test_a_gpu_goes_before_the_cpu_beside_it(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gpu = Gpu(0, "NVIDIA H100 80GB HBM3", 80 << 30, (9, 0), False)
    monkeypatch.setattr(this_machine, "visible_gpus", lambda: [gpu])
    measured(data, OWN)
    assert this_machine.opened().gpu == OWN
    measured(data, "h100-sxm-80gb")
    assert this_machine.opened().gpu == "h100-sxm-80gb"


def test_a_machine_without_a_run_is_shown_another_of_its_kind_and_told_so(data: Path) -> None:
    measured(data, "h100-sxm-80gb", "host-another-2c")
    (data / "profiles" / f"{OWN}.json").write_text((data / "profiles" / "host-another-2c.json").read_text())
    found = this_machine.opened()
    assert found.gpu == "host-another-2c"
    other = "so this shows host-another-2c; `make bench` measures yours."
    assert found.why == f"This machine ({OWN}) has no run yet, {other}"


def test_a_name_is_opened_or_refused_with_those_that_there_are(data: Path) -> None:
    with pytest.raises(UnknownGpu, match="run `make bench` first"):
        this_machine.opened()
    measured(data, "h100-sxm-80gb")
    assert this_machine.opened("h100-sxm-80gb").gpu == "h100-sxm-80gb"
    with pytest.raises(UnknownGpu, match=r"'b42' .*there are: h100-sxm-80gb"):
        this_machine.opened("b42")
