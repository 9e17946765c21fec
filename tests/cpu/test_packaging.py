"""The wheel, as a user gets it: what it holds, and that it explains a choice from its own shipped profile."""

import json
import os
import shutil
import subprocess
import sys
import sysconfig
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
SHAPE = ("--shape", "1,8,8,1024,1024,64", "--dtype", "float32")
PACKAGES = ("smscope", "microbench", "attention")
SHIPPED = ("profiles", "published", "schema")


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built from a copy of the tree, so that the build's stamp does not touch the checkout."""
    tree, target = tmp_path_factory.mktemp("tree") / "smscope", tmp_path_factory.mktemp("wheel")
    unwanted = shutil.ignore_patterns(".git", ".venv", "runs", "__pycache__", ".*_cache")
    shutil.copytree(ROOT, tree, ignore=unwanted)
    (tree / "README.md").touch()
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(target)]
    subprocess.run(build, cwd=tree, check=True, capture_output=True)
    (built,) = target.glob("smscope-*-py3-none-any.whl")
    return built


@pytest.fixture(scope="session")
def names(wheel: Path) -> set[str]:
    with zipfile.ZipFile(wheel) as archive:
        return set(archive.namelist())


class Installed:
    """An environment that holds the wheel; the other packages are those of the environment under test."""

    def __init__(self, folder: Path, wheel: Path) -> None:
        self.folder = folder
        self.python = folder / "env" / "bin" / "python"
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder / "env")], check=True)
        pip = [sys.executable, "-m", "pip", "--python", str(self.python), "install", "--no-index", "--no-deps"]
        subprocess.run([*pip, str(wheel)], check=True, capture_output=True)
        # A path in a .pth file adds the packages there, not the .pth files beside them: no editable smscope comes too.
        (site,) = (folder / "env" / "lib").glob("python*/site-packages")
        (site / "others.pth").write_text(sysconfig.get_path("purelib") + "\n")

    def run(self, *arguments: str, program: str = "python", **more: str) -> subprocess.CompletedProcess[str]:
        """`python ...` away from the checkout, with a user's data and cache folders of its own; `more`: variables."""
        homes = {f"XDG_{kind}_HOME": str(self.folder / kind) for kind in ("DATA", "CACHE")}
        ours = ("PYTHONPATH", "SMSCOPE_CACHE", "SMSCOPE_DATA")
        inherited = {name: value for name, value in os.environ.items() if name not in ours}
        command = [str(self.python.with_name(program)), *arguments]
        return subprocess.run(
            command, capture_output=True, text=True, cwd=self.folder, env={**inherited, **homes, **more}
        )

    def json(self, *arguments: str, program: str = "python") -> Any:
        told = self.run(*arguments, program=program)
        assert told.returncode == 0, told.stderr
        return json.loads(told.stdout)


@pytest.fixture(scope="session")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Installed:
    return Installed(tmp_path_factory.mktemp("installed"), wheel)


def sources(*suffixes: str) -> Iterator[str]:
    for package in PACKAGES:
        for file in (ROOT / package).rglob("*"):
            if file.suffix in suffixes:
                yield file.relative_to(ROOT).as_posix()


def test_the_wheel_holds_every_source_of_its_packages(names):
    expected = set(sources(".py", ".cu", ".cuh", ".hpp", ".cpp", ".json"))
    assert any(name.endswith(".cu") for name in expected) and expected <= names
    assert {f"{package}/py.typed" for package in PACKAGES} <= names


@pytest.mark.parametrize("folder", SHIPPED)
def test_the_wheel_ships_facts_profiles_and_schemas(names, folder):
    expected = {
        f"microbench/data/{folder}/{file.relative_to(ROOT / 'data' / folder).as_posix()}"
        for file in (ROOT / "data" / folder).rglob("*")
        if file.suffix in (".csv", ".json")
    }
    assert expected and expected <= names


def test_the_wheel_holds_nothing_else(names):
    heads = {name.split("/")[0] for name in names}
    assert {head for head in heads if not head.endswith(".dist-info")} == set(PACKAGES)
    assert not [name for name in names if name.startswith("microbench/data/runs")]


def test_the_licence_travels_with_the_wheel(names):
    assert any(name.endswith(".dist-info/licenses/LICENSE") for name in names)


def test_the_installed_package_is_the_wheels(installed):
    files = ", ".join(f"{package}.__file__" for package in PACKAGES)
    for file in installed.json("-c", f"import json, {', '.join(PACKAGES)}; print(json.dumps([{files}]))"):
        assert Path(file).is_relative_to(installed.folder)


KEYS = """
import json
from attention.choose import learned_key
from microbench.results.profile import Profile, available
print(json.dumps({gpu: learned_key.key_of(Profile.load(gpu)) for gpu in available()}))
"""


def test_the_wheel_takes_what_timings_teach_from_the_file_it_ships(installed):
    """Its corrections go with what else it ships, else a first call would derive them again; campaigns stay behind."""
    ours = {name: value for name, value in os.environ.items() if not name.startswith("SMSCOPE_")}
    told = subprocess.run([sys.executable, "-c", KEYS], capture_output=True, text=True, cwd=ROOT, env=ours, check=True)
    keys: dict[str, str] = json.loads(told.stdout)
    assert {gpu: key.partition("-")[0] + "-" for gpu, key in keys.items()} == installed.json("-c", KEYS)


def test_the_wheel_explains_a_choice_from_each_shipped_profile(installed):
    shipped = sorted(file.stem for file in (ROOT / "data" / "profiles").glob("*.json"))
    assert shipped, "no profile is committed; run `make bench`"
    for gpu in shipped:
        assert installed.json("-m", "attention", "explain", *SHAPE, "--gpu", gpu, "--json"), gpu


def test_the_installed_command_explains_a_choice_on_a_gpu_that_was_measured_and_on_one_that_was_not(installed):
    asked = ("explain", "--shape", "1,32,8,4096,4096,128", "--causal", "--json", "--gpu")
    measured = installed.json(*asked, "h100-sxm-80gb", program="smscope")
    assert (measured["choice"]["gpu"], measured["known"]) == ("h100-sxm-80gb", None)
    unmeasured = installed.json(*asked, "a100", program="smscope")
    assert unmeasured["choice"]["pick"]["prediction"] is None
    assert {board["chip"] for board in unmeasured["known"]["boards"]} == {"GA100"}
    assert unmeasured["published"]["candidates"] and unmeasured["published"]["beside_torch"]["ratio"] > 0


def test_the_installed_command_lists_its_verbs_and_imports_nothing_that_lies_around(installed):
    (installed.folder / "attention.py").write_text("raise SystemExit('this must not run')")
    try:
        told = installed.run("--help", program="smscope")
        assert (told.returncode, told.stderr) == (0, "") and "test-gpu" in told.stdout
        assert installed.json("list", "--json", program="smscope")
        assert str(installed.folder / "attention.py") in installed.run("-c", "import smscope").stderr
    finally:
        (installed.folder / "attention.py").unlink()


def test_the_wheel_lists_its_probes(installed):
    probes = installed.json("-m", "microbench", "list", "--json")
    assert {probe["probe"] for probe in probes} == {
        Path(name).stem
        for name in sources(".py")
        if name.startswith("microbench/probes/") and not Path(name).stem.startswith("_")
    }


def test_the_wheel_verifies_without_the_tests(names, installed):
    """Programs and kernels are in it; here, without a GPU, the emulator's half runs."""
    rooms = ("attention/verify/worker.py", "microbench/verify/probed.py")
    kernels = ("microbench/verify/differential/attention_sm90a.cu", "microbench/verify/blind/blind_meaner.cu")
    assert {*rooms, *kernels} <= names
    assert installed.run("-m", "attention.verify", "--help").returncode == 0
    modules = ("attention.verify.worker", "microbench.verify.differential.compare")
    assert installed.run("-c", f"import {', '.join(modules)}").stderr == ""
    hidden = installed.run("verify", program="smscope", CUDA_VISIBLE_DEVICES="")
    assert (hidden.returncode, hidden.stdout, hidden.stderr.count("\n")) == (2, "", 1)
    assert "There is no NVIDIA GPU to verify here" in hidden.stderr
    if shutil.which("g++") or shutil.which("clang++"):
        quick = ("--device", "emulated:sm80", "--only", "ffma_latency", "--quick", "--json")
        (row,) = installed.json("verify", *quick, program="smscope")
        assert (row["status"], row["checked"] > 0) == ("emulated", True)
        planted = installed.json("verify", "--device", "emulated:sm70", "--only", "smooth", "--json", program="smscope")
        assert [(row["bug"], row["lazy"]) for row in planted] == [("IN_PLACE", "race")]


def test_new_runs_of_an_installed_wheel_go_to_the_users_folder(installed):
    code = "import json; from microbench import paths; print(json.dumps(str(paths.writable_data())))"
    assert Path(installed.json("-c", code)) == installed.folder / "DATA" / "smscope"


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_a_fresh_copy_sets_itself_up_measures_and_explains(tmp_path):
    """Needs pip's index: what a person does first, with Python, make and pip only."""
    tree = tmp_path / "smscope"
    shutil.copytree(ROOT, tree, ignore=shutil.ignore_patterns(".git", ".venv", "__pycache__", ".*_cache"))
    make = ["make", "bench", "LANE=host", "ARGS=--quick"]
    inherited = {name: value for name, value in os.environ.items() if name not in ("MAKEFLAGS", "VIRTUAL_ENV")}
    first = subprocess.run(make, cwd=tree, env=inherited, capture_output=True, text=True)
    assert first.returncode == 0, first.stdout + first.stderr
    assert "installing for `bench`" in first.stdout
    second = subprocess.run(["make", "profile", "LANE=host"], cwd=tree, env=inherited, capture_output=True, text=True)
    assert second.returncode == 0, second.stdout + second.stderr
    assert "installing" not in second.stdout
