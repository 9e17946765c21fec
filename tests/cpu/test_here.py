"""Which GPU is here, under which driver and torch: what a timing of `smscope tune` is keyed by."""

from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from attention.choose.here import Here, here_of
from microbench.machine import driver, nvml
from microbench.results.profile import Profile
from tests.cpu.campaign_rows import GPU

H200 = Profile.load(GPU)
OPEN_MODULE = "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.95.05  Release Build  (dvs-builder@U22)\n"
CLOSED_MODULE = "NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.161.08  Sat Feb 17\nGCC version:  gcc 11.4.0\n"
GPUS = {
    "H200": SimpleNamespace(name="NVIDIA H200", major=9, minor=0, multi_processor_count=132, total_memory=139 << 30),
    "H100": SimpleNamespace(
        name="NVIDIA H100 80GB HBM3", major=9, minor=0, multi_processor_count=132, total_memory=79 << 30
    ),
    "K80": SimpleNamespace(name="Tesla K80", major=3, minor=7, multi_processor_count=13, total_memory=11 << 30),
}


def have(monkeypatch: pytest.MonkeyPatch, *names: str, release: str | None = "580.95.05") -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: bool(names))
    monkeypatch.setattr(torch.cuda, "device_count", lambda: len(names))
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda index: GPUS[names[index]])
    monkeypatch.setattr(driver, "release", lambda: release)


@pytest.mark.parametrize(("text", "release"), [(OPEN_MODULE, "580.95.05"), (CLOSED_MODULE, "535.161.08")])
def test_the_release_is_the_kernel_modules(
    text: str, release: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "version").write_text(text)
    monkeypatch.setattr(driver, "FILES", (tmp_path / "nothing", tmp_path / "version"))
    monkeypatch.setattr(nvml, "visible_gpus", lambda: pytest.fail("NVML was asked"))
    driver.release.cache_clear()
    assert driver.release() == release
    driver.release.cache_clear()


def test_nvml_is_asked_where_no_file_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "version").write_text("a module of somebody's own\n")
    monkeypatch.setattr(driver, "FILES", (tmp_path / "version",))
    for gpus, release in (([], None), ([object()], "550.1")):
        driver.release.cache_clear()
        monkeypatch.setattr(nvml, "visible_gpus", lambda found=gpus: found)
        monkeypatch.setattr(nvml, "facts", lambda gpu: SimpleNamespace(driver="550.1"))
        assert driver.release() == release
    driver.release.cache_clear()


def test_a_profiles_own_gpu_goes_by_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    have(monkeypatch, "K80", "H100", "H200")
    assert here_of(H200) == Here(GPU, "580.95.05", str(torch.__version__))


def test_a_gpu_that_a_neighbour_stands_for_keeps_its_own_name(monkeypatch: pytest.MonkeyPatch) -> None:
    have(monkeypatch, "H100")
    found = here_of(H200)
    assert found is not None and found.gpu == "h100-sxm-80gb"


@pytest.mark.parametrize("names", [(), ("K80",)])
def test_a_gpu_that_is_elsewhere_is_not_here(names: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    have(monkeypatch, *names)
    assert here_of(H200) is None


def test_without_a_driver_that_can_be_named_nothing_is_here(monkeypatch: pytest.MonkeyPatch) -> None:
    have(monkeypatch, "H200", release=None)
    assert here_of(H200) is None
