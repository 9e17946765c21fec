"""constraints/environment.sh: .venv is made with a Python that is new enough, by uv where this machine has none."""

import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
# A Python that is new enough: it notes what prepare.py is called with, and ends with the next code of the file `codes`.
PYTHON = """#!/bin/sh
case "$*" in
  *-m*venv*)
    mkdir -p .venv/bin && touch .venv/pyvenv.cfg && echo "VIRTUAL_ENV=$PWD/.venv" > .venv/bin/activate
    cp "$0" .venv/bin/python ;;
  constraints/prepare.py*)
    shift; echo "$*" >> called
    if [ -e codes ]; then read -r code rest < codes; echo "$rest" > codes; exit "${code:-0}"; fi ;;
esac
"""
OLD_PYTHON = """#!/bin/sh
case "$*" in
  --version) echo "Python 3.10.12" ;;
  *"pip"*install*) echo "$*" >> "$HERE/pip_calls"; {pip} ;;
  *) exit 1 ;;
esac
"""
FAKE_UV = """#!/bin/sh
echo "$*" >> "$HERE/uv_calls"
case "$1" in
  --version) echo "uv 0.13.9" ;;
  venv) {venv} ;;
esac
"""
MAKES = '"$HERE/python-that-uv-fetched" -m venv .venv'
FAILS = 'echo "error: Failed to download cpython-3.12.12" >&2; exit 2'


@dataclass
class Checkout:
    """A tree with environment.sh, and a PATH without any Python but those that a test puts there."""

    root: Path

    def program(self, name: str, text: str, folder: str = "bin") -> None:
        file = self.root / folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        file.chmod(0o755)

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        tools = self.root / "tools"
        tools.mkdir(exist_ok=True)
        for tool in (
            "sh",
            "dirname",
            "grep",
            "ls",
            "rm",
            "tail",
            "mkdir",
            "flock",
            "cat",
            "cp",
            "chmod",
            "touch",
            "sed",
        ):
            found = shutil.which(tool)
            if found and not (tools / tool).exists():
                (tools / tool).symlink_to(found)
        paths = f"{self.root / 'bin'}:{tools}"
        environment = {"PATH": paths, "HERE": str(self.root), "HOME": str(self.root)}
        command = [str(self.root / "constraints" / "environment.sh"), *arguments]
        return subprocess.run(command, capture_output=True, text=True, env=environment)

    def said(self, file: str) -> str:
        path = self.root / file
        return path.read_text() if path.exists() else ""


@pytest.fixture
def checkout(tmp_path: Path) -> Checkout:
    (tmp_path / "constraints").mkdir()
    shutil.copy(ROOT / "constraints" / "environment.sh", tmp_path / "constraints")
    made = Checkout(tmp_path)
    made.program("python-that-uv-fetched", PYTHON, ".")
    return made


def test_a_python_on_the_path_makes_it_and_the_arguments_go_on(checkout: Checkout) -> None:
    checkout.program("python3.12", PYTHON)
    checkout.program("python3", OLD_PYTHON.format(pip="exit 1"))
    told = checkout.run("--lane", "", "bench")
    assert (told.returncode, told.stderr) == (0, "")
    assert checkout.said("called") == "--lane  bench\n" and not checkout.said("pip_calls")
    before = (checkout.root / ".venv" / "pyvenv.cfg").stat().st_mtime_ns
    assert checkout.run("dev").returncode == 0
    assert (checkout.root / ".venv" / "pyvenv.cfg").stat().st_mtime_ns == before


def test_python_3_10_installs_uv_in_a_corner_and_uv_makes_it(checkout: Checkout) -> None:
    uv = FAKE_UV.format(venv=MAKES)
    install = f"mkdir -p .venv-uv/bin && cat > .venv-uv/bin/uv <<'END'\n{uv}END\nchmod +x .venv-uv/bin/uv"
    checkout.program("python3", OLD_PYTHON.format(pip=install))
    told = checkout.run("bench")
    assert (told.returncode, told.stderr) == (0, "")
    assert "here is Python 3.10.12; uv makes .venv with Python 3.12" in told.stdout
    assert "--target .venv-uv" in checkout.said("pip_calls")
    assert "--python 3.12 .venv" in checkout.said("uv_calls")
    assert checkout.said("called") == "bench\n"


def test_a_uv_on_the_path_is_used(checkout: Checkout) -> None:
    checkout.program("python3", OLD_PYTHON.format(pip="exit 1"))
    checkout.program("uv", FAKE_UV.format(venv=MAKES))
    assert checkout.run("bench").returncode == 0
    assert not checkout.said("pip_calls") and checkout.said("called") == "bench\n"


@pytest.mark.parametrize(
    ("pip", "venv", "says"),
    [
        ("echo 'ERROR: No matching distribution found for uv' >&2; exit 1", None, "No matching distribution"),
        ("exit 1", FAILS, "Failed to download cpython"),
    ],
    ids=["no uv", "no interpreter"],
)
def test_where_the_fetch_fails_one_sentence_names_the_package(
    checkout: Checkout, pip: str, venv: str | None, says: str
) -> None:
    checkout.program("python3", OLD_PYTHON.format(pip=pip))
    if venv:
        checkout.program("uv", FAKE_UV.format(venv=venv))
    told = checkout.run("bench")
    assert told.returncode == 2 and told.stderr.count("\n") == 1
    assert says in told.stderr and "here is Python 3.10.12" in told.stderr
    assert "apt install python3.11 python3.11-venv" in told.stderr and "PYTHON=" in told.stderr
    assert not checkout.said("called")


def test_without_any_python_it_is_said(checkout: Checkout) -> None:
    told = checkout.run("bench")
    assert told.returncode == 2 and "here is no python3" in told.stderr and told.stderr.count("\n") == 1


def test_another_lanes_environment_is_made_anew(checkout: Checkout) -> None:
    checkout.program("python3", PYTHON)
    assert checkout.run("bench").returncode == 0
    (checkout.root / ".venv" / "old").touch()
    (checkout.root / "codes").write_text("3 0")
    assert checkout.run("dev").returncode == 0
    assert checkout.said("called") == "bench\ndev\ndev\n" and not (checkout.root / ".venv" / "old").exists()


def test_an_environment_that_was_moved_is_made_anew(checkout: Checkout, tmp_path: Path) -> None:
    checkout.program("python3", PYTHON)
    assert checkout.run("bench").returncode == 0
    activate = checkout.root / ".venv" / "bin" / "activate"
    activate.write_text(activate.read_text().replace(str(tmp_path), "/elsewhere"))
    assert checkout.run("bench").returncode == 0
    assert str(tmp_path) in activate.read_text()


def test_a_folder_that_is_no_environment_is_left_alone(checkout: Checkout) -> None:
    checkout.program("python3", PYTHON)
    (checkout.root / ".venv").mkdir()
    (checkout.root / ".venv" / "thesis.tex").write_text("years of work")
    told = checkout.run("bench")
    assert told.returncode == 2 and "holds no virtual environment; move it away" in told.stderr
    assert checkout.said(".venv/thesis.tex") == "years of work"


def test_what_prepare_answers_is_what_make_hears(checkout: Checkout) -> None:
    checkout.program("python3", PYTHON)
    (checkout.root / "codes").write_text("2")
    assert checkout.run("bench").returncode == 2
    assert os.access(checkout.root / ".venv" / "bin" / "python", os.X_OK)
