"""constraints/: which lane a machine gets, what that lane pins, and what an existing environment is told."""

import importlib
import os
import subprocess
import sys
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, requires
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from packaging.requirements import Requirement

ROOT = Path(__file__).resolve().parents[2]
LANES = ("host", "volta", "cuda")


@pytest.fixture
def lane(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(ROOT / "constraints"))
    return importlib.import_module("lane")


@pytest.fixture
def lacking(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(ROOT / "constraints"))
    return importlib.import_module("lacking")


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
def test_the_compute_capability_decides(lane: ModuleType, gpus: list[tuple[Any, ...]], expected: str) -> None:
    choice = lane.choose([lane.Gpu(*gpu) for gpu in gpus])
    assert choice.lane == expected
    assert "\n" not in choice.why


def test_the_reason_names_the_gpu_and_its_compute_capability(lane: ModuleType) -> None:
    assert "Tesla V100 (compute capability 7.0)" in lane.choose([lane.Gpu("Tesla V100", (7, 0), True)]).why


def test_a_gpu_that_no_lane_serves_on_its_driver_is_an_error_that_says_what_to_do(lane: ModuleType) -> None:
    with pytest.raises(lane.NoLaneError, match=r"B300 .*update the driver, or measure the CPU with LANE=host"):
        lane.choose([lane.Gpu("B300", (10, 3), False)])


def test_nvidia_smi_is_read(lane: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    answer_as(tmp_path, "NVIDIA H100 80GB HBM3, 9.0, 580.159.04\nNVIDIA A100, 8.0, 535.10")
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    assert lane.find_gpus() == [
        lane.Gpu("NVIDIA H100 80GB HBM3", (9, 0), True),
        lane.Gpu("NVIDIA A100", (8, 0), False),
    ]


@pytest.mark.parametrize(
    ("text", "code"), [("No devices were found", 0), ("Driver mismatch", 9), ("A100, [N/A], 1", 0)]
)
def test_an_nvidia_smi_that_fails_leaves_the_question_to_the_driver(
    lane: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, code: int
) -> None:
    answer_as(tmp_path, text, code)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    told = [lane.Gpu("A100", (8, 0), True)]
    monkeypatch.setattr(lane, "_from_libcuda", lambda: told)
    assert lane.find_gpus() == told


@pytest.mark.parametrize("name", LANES)
def test_every_direct_requirement_of_a_lane_is_pinned_within_its_range(lacking: ModuleType, name: str) -> None:
    pins = lacking.pins(name)
    table = lacking.tables()[name]
    sets = [*table["extras"].values(), *table.get("extras_with_cuda_torch", {}).values()]
    wanted = {(r.name, str(r.specifier)): r for extras in sets for r in lacking.requirements(extras)}
    for requirement in wanted.values():
        pin = pins.get(lacking.canonical(requirement.name))
        assert pin is not None, f"constraints/{name}.txt pins no {requirement.name}"
        assert requirement.specifier.contains(pin), f"{requirement} excludes constraints/{name}.txt's {pin}"


@pytest.mark.parametrize("name", LANES)
def test_every_package_that_a_lane_installs_here_is_pinned(lacking: ModuleType, name: str) -> None:
    """Followed from the direct requirements through what the packages of this environment ask for in turn."""
    pins, seen = lacking.pins(name), set[str]()
    waiting = [r.name for r in lacking.requirements(lacking.tables()["host"]["extras"]["dev"])]
    while waiting:
        package = lacking.canonical(waiting.pop())
        if package not in seen:
            seen.add(package)
            assert package in pins, f"constraints/{name}.txt pins no {package}; run `make lock`"
            with suppress(PackageNotFoundError):  # of another platform
                asked = map(Requirement, requires(package) or ())
                waiting += [r.name for r in asked if r.marker is None or r.marker.evaluate({"extra": ""})]
    assert len(seen) > 60


@pytest.mark.parametrize("name", LANES)
def test_the_pins_hold_what_was_chosen(lacking: ModuleType, name: str) -> None:
    pins = lacking.pins(name)
    for file in ("every.in", f"{name}.in"):
        lines = (line.split("#")[0].strip() for line in (ROOT / "constraints" / file).read_text().splitlines())
        for package, version in (line.split("==") for line in lines if "==" in line):
            assert pins[lacking.canonical(package)] == version, "run `make lock`"


@pytest.mark.parametrize("name", LANES)
def test_each_step_of_a_lane_has_its_size_and_holds_the_one_before(lacking: ModuleType, name: str) -> None:
    table = lacking.tables()[name]
    assert list(table["extras"]) == list(table["megabytes"]) == lacking.steps()
    assert list(table["megabytes"].values()) == sorted(table["megabytes"].values())
    before: set[str] = set()
    for extras in table["extras"].values():
        now = {requirement.name for requirement in lacking.requirements(extras)}
        assert before <= now
        before = now


def test_bench_needs_no_torch_in_any_lane(lacking: ModuleType) -> None:
    for name in LANES:
        needs = {requirement.name for requirement in lacking.requirements(lacking.tables()[name]["extras"]["bench"])}
        assert "numba" in needs
        assert "torch" not in needs


def check_with(python: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    command = [str(python), str(ROOT / "constraints" / "prepare.py"), "--check", *arguments]
    return subprocess.run(command, capture_output=True, text=True, env={**os.environ, **environment})


@pytest.fixture(scope="module")
def empty(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The Python of an environment that holds nothing, not even pip."""
    folder = tmp_path_factory.mktemp("empty")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
    return folder / "bin" / "python"


def test_an_existing_environment_is_told_what_it_lacks(empty: Path, tmp_path: Path) -> None:
    import packaging

    (tmp_path / "packaging").symlink_to(Path(packaging.__file__).parent)
    told = check_with(empty, "--lane", "host", "bench", PYTHONPATH=str(tmp_path))
    assert told.returncode == 2
    assert "lacks filelock>=3.12, numba" in told.stdout
    assert "torch" not in told.stdout
    assert told.stdout.count("\n") == 1


def test_an_existing_environment_without_pip_is_told_so(empty: Path) -> None:
    told = check_with(empty, "--lane", "host", "bench")
    assert told.returncode != 0
    assert told.stderr.count("\n") == 1
    assert "neither pip nor packaging" in told.stderr


def test_an_existing_environment_with_everything_is_used_as_it_is() -> None:
    told = check_with(Path(sys.executable), "--lane", "host", "bench")
    assert (told.returncode, told.stderr) == (0, "")


def test_make_without_a_new_enough_python_says_so() -> None:
    told = subprocess.run(["make", "bench", "PYTHON=no-such-python"], capture_output=True, text=True, cwd=ROOT)
    assert told.returncode != 0
    assert "no-such-python is no Python 3.11 or newer" in told.stderr


def test_the_wheel_needs_what_bench_needs_and_pip() -> None:
    make = ["make", "--dry-run", "wheel", f"PYTHON={sys.executable}", "LANE=host"]
    told = subprocess.run(make, capture_output=True, text=True, cwd=ROOT, check=True).stdout
    assert 'prepare.py --check --lane "host" bench' in " ".join(told.split())
    assert "-m pip " in told and "hatchling" not in told


def test_make_lists_its_targets() -> None:
    told = subprocess.run(["make"], capture_output=True, text=True, cwd=ROOT, check=True).stdout
    for target in ("bench", "test", "test-all", "lint", "lab", "notebooks", "profile", "check", "report", "clean"):
        assert f"make {target} " in told
