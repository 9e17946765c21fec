"""constraints/: which lane a machine gets, what that lane pins, and what make says."""

import importlib
import os
import re
import subprocess
import sys
import tomllib
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

from tests.elsewhere import ROOT, python

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
# Every extra that environment.sh installs by the pins of a lane.
LANES = {
    "host": ("dev", "twins", "lab"),
    "volta": ("volta", "dev", "lab"),
    "cuda": ("cuda", "dev", "twins-cuda13", "lab"),
}


def requirements(*extras: str) -> list[Requirement]:
    """Every direct requirement of these extras that applies to this Python, an extra within an extra opened up."""
    found = [Requirement(line) for line in PROJECT["dependencies"]]
    for extra in extras:
        for requirement in map(Requirement, PROJECT["optional-dependencies"][extra]):
            found += requirements(*requirement.extras) if requirement.name == PROJECT["name"] else [requirement]
    return [each for each in found if each.marker is None or each.marker.evaluate()]


def pins(lane: str) -> dict[str, str]:
    """The exact version that constraints/<lane>.txt gives each distribution; the newest where it depends on Python."""
    text = (ROOT / "constraints" / f"{lane}.txt").read_text()
    lines = (re.split(r"[#;]", line)[0].strip() for line in text.splitlines())
    return {canonicalize_name(name): pin for name, _, pin in (line.partition("==") for line in lines if line)}


@pytest.fixture
def lane(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(ROOT / "constraints"))
    return importlib.import_module("lane")


def answer_as(folder: Path, text: str, code: int = 0) -> None:
    program = folder / "nvidia-smi"
    program.write_text(f"#!/bin/sh\ncat <<'END'\n{text}\nEND\nexit {code}\n")
    program.chmod(0o755)


@pytest.mark.parametrize(
    ("gpus", "expected"),
    [
        ([], "host"),
        ([("Tesla P100", (6, 0), True)], "host"),
        ([("Tesla V100", (7, 0), True)], "volta"),  # a new driver does not make CUDA 13 wheels hold sm_70
        ([("Tesla V100", (7, 0), False)], "volta"),
        ([("Tesla T4", (7, 5), True)], "cuda"),
        ([("A100", (8, 0), True)], "cuda"),
        ([("A100", (8, 0), False)], "volta"),
        ([("B200", (10, 0), True)], "cuda"),
        ([("B200", (10, 0), False)], "volta"),  # CUDA 12.8 compiles for sm_100
        ([("H100", (9, 0), True), ("Tesla V100", (7, 0), True)], "volta"),
        ([("Tesla P100", (6, 0), True), ("H100", (9, 0), True)], "cuda"),
    ],
)
def test_the_compute_capability_decides(lane, gpus, expected):
    chosen, why = lane.choose([lane.Gpu(*gpu) for gpu in gpus])
    assert chosen == expected
    assert "\n" not in why


def test_the_reason_names_the_gpu_and_its_compute_capability(lane):
    assert "Tesla V100 (compute capability 7.0)" in lane.choose([lane.Gpu("Tesla V100", (7, 0), True)])[1]


def test_a_gpu_that_no_lane_serves_on_its_driver_is_an_error_that_says_what_to_do(lane):
    with pytest.raises(lane.NoLaneError, match=r"B300 .*update the driver, or measure the CPU with LANE=host"):
        lane.choose([lane.Gpu("B300", (10, 3), False)])


def test_nvidia_smi_is_read(lane, tmp_path, monkeypatch):
    answer_as(tmp_path, "NVIDIA H100 80GB HBM3, 9.0, 580.159.04\nNVIDIA A100, 8.0, 535.10")
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    assert lane.from_nvidia_smi() == [
        lane.Gpu("NVIDIA H100 80GB HBM3", (9, 0), True),
        lane.Gpu("NVIDIA A100", (8, 0), False),
    ]


@pytest.mark.parametrize(
    ("text", "code"), [("No devices were found", 0), ("Driver mismatch", 9), ("A100, [N/A], 1", 0)]
)
def test_an_nvidia_smi_that_fails_leaves_the_question_to_the_driver(lane, tmp_path, monkeypatch, text, code):
    answer_as(tmp_path, text, code)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    assert lane.from_nvidia_smi() == []


class FakeCuda:
    """libcuda of a machine with one V100, on a driver that loads CUDA 12.8; `broken` where it has no device."""

    def __init__(self, broken: int) -> None:
        self.broken = broken

    def cuInit(self, flags: int) -> int:
        assert "CUDA_VISIBLE_DEVICES" not in os.environ
        return self.broken

    def cuDeviceGetCount(self, count: Any) -> int:
        count._obj.value = 1
        return 0

    def cuDriverGetVersion(self, version: Any) -> int:
        version._obj.value = 12080
        return 0

    def cuDeviceGet(self, device: Any, index: int) -> None:
        device._obj.value = index

    def cuDeviceGetName(self, name: Any, size: int, device: Any) -> None:
        name.value = b"Tesla V100"

    def cuDeviceGetAttribute(self, value: Any, attribute: int, device: Any) -> None:
        value._obj.value = {75: 7, 76: 0}[attribute]


@pytest.mark.parametrize("broken", [0, 100])
def test_the_driver_is_asked_for_every_gpu(lane, monkeypatch, broken):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    monkeypatch.setattr(lane.ctypes, "CDLL", lambda name: FakeCuda(broken))
    assert lane.from_libcuda() == ([] if broken else [lane.Gpu("Tesla V100", (7, 0), False)])


@pytest.mark.parametrize(
    ("text", "code", "lane", "why"),
    [
        ("NVIDIA H100, 9.0, 580.1", 0, "cuda\n", "found NVIDIA H100 (compute capability 9.0) -> lane cuda."),
        ("NVIDIA B300, 10.3, 570.1", 2, "", "found NVIDIA B300 (compute capability 10.3) on a driver older than 580"),
    ],
)
def test_the_lane_is_printed_and_why_beside_it(tmp_path, text, code, lane, why):
    answer_as(tmp_path, text)
    told = python(str(ROOT / "constraints" / "lane.py"), PATH=f"{tmp_path}:{os.environ['PATH']}")
    assert (told.returncode, told.stdout) == (code, lane) and why in told.stderr and told.stderr.count("\n") == 1


@pytest.mark.parametrize("name", LANES)
def test_every_direct_requirement_of_a_lane_is_pinned_within_its_range(name):
    pinned = pins(name)
    for requirement in requirements(*LANES[name]):
        pin = pinned.get(canonicalize_name(requirement.name))
        assert pin is not None, f"constraints/{name}.txt pins no {requirement.name}"
        assert requirement.specifier.contains(pin), f"{requirement} excludes constraints/{name}.txt's {pin}"


@pytest.mark.parametrize("name", LANES)
def test_every_package_that_a_lane_installs_here_is_pinned(name):
    """Followed from the direct requirements through what the packages of this environment ask for in turn."""
    pinned, seen = pins(name), set[str]()
    waiting = [requirement.name for requirement in requirements("dev", "twins")]
    while waiting:
        package = canonicalize_name(waiting.pop())
        if package not in seen:
            seen.add(package)
            assert package in pinned, f"constraints/{name}.txt pins no {package}; run `make lock`"
            with suppress(PackageNotFoundError):  # of another platform
                if package == "torch" and Version(version(package)).base_version != pinned[package]:
                    continue  # another lane's, which asks for other libraries
                asked = map(Requirement, requires(package) or ())
                waiting += [r.name for r in asked if r.marker is None or r.marker.evaluate({"extra": ""})]
    assert len(seen) > 60


@pytest.mark.parametrize("name", LANES)
def test_the_pins_hold_what_was_chosen(name):
    pinned = pins(name)
    for file in ("every.in", f"{name}.in"):
        lines = (line.split("#")[0].strip() for line in (ROOT / "constraints" / file).read_text().splitlines())
        for package, pin in (line.split("==") for line in lines if "==" in line):
            assert pinned[canonicalize_name(package)] == pin, "run `make lock`"


@pytest.mark.parametrize("extras", [(), ("volta",), ("cuda",)], ids=LANES)
def test_bench_needs_no_torch_in_any_lane(extras):
    needs = {requirement.name for requirement in requirements(*extras)}
    assert "numba" in needs and "torch" not in needs


def make(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["make", *arguments], capture_output=True, text=True, cwd=ROOT)


def test_make_without_a_new_enough_python_says_so():
    told = make("bench", "PYTHON=no-such-python")
    assert told.returncode != 0 and "no-such-python is no Python 3.11 or newer" in told.stderr


def test_an_environment_that_is_named_is_used_as_it_is():
    told = make("--dry-run", "test", f"PYTHON={sys.executable}").stdout
    assert "environment.sh" not in told and f"{sys.executable} -m pytest" in told


def test_make_hands_the_step_and_the_lane_on():
    told = make("--dry-run", "report", "PYTHON=", "LANE=host").stdout
    assert 'constraints/environment.sh report "host"' in told


def test_the_wheel_needs_what_bench_needs_and_pip():
    told = make("--dry-run", "wheel", "PYTHON=", "LANE=").stdout
    assert 'constraints/environment.sh bench ""' in told and "-m pip " in told and "hatchling" not in told


def test_make_lists_its_targets():
    told = make().stdout
    for target in ("bench", "test", "test-all", "lint", "lab", "notebooks", "profile", "check", "report", "clean"):
        assert f"make {target} " in told
