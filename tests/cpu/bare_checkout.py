"""A checkout with environment.sh, on a machine without any Python but those that a test puts there."""

import os
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
TOOLS = "cat chmod cksum cp dirname flock grep ls mkdir rm sed sh sleep tail tee touch uname"
# A Python that is new enough, with its pip: it notes what pip installs, and does then what the file `pip` says.
PYTHON = """#!/bin/sh
case "$*" in
  "-m venv .venv")
    mkdir -p .venv/bin && touch .venv/pyvenv.cfg && echo "VIRTUAL_ENV=$PWD/.venv" > .venv/bin/activate
    cp "$0" .venv/bin/python && cp "$0" .venv/bin/pip ;;
  constraints/lane.py) echo >> lane_calls; cat lane ;;
  "-m pip index versions torch") cat index ;;
  "-m pip "*" install "*) echo "$*" | sed 's/.*--constraint //' >> pip_calls; [ ! -e pip ] || . ./pip ;;
esac
"""
OLD_PYTHON = """#!/bin/sh
case "$*" in
  --version) echo "Python 3.10.12" ;;
  *"pip"*install*) echo "$*" >> "$HERE/uv_installs"; {pip} ;;
  *) exit 1 ;;
esac
"""
FAKE_UV = """#!/bin/sh
echo "$*" >> "$HERE/uv_calls"
case "$1" in
  venv) {venv} ;;
esac
"""
MAKES = '"$HERE/python-that-uv-fetched" -m venv .venv'
FAILS = 'echo "error: Failed to download cpython-3.12.12" >&2; exit 2'
HOST_BENCH, HOST_DEV = "constraints/host.txt --editable .\n", "constraints/host.txt --editable .[dev,twins]\n"


@dataclass
class Checkout:
    """A tree with environment.sh, and a PATH without any Python but those that a test puts there."""

    root: Path
    started: list[subprocess.Popen[str]] = field(default_factory=list)

    def program(self, name: str, text: str, folder: str = "bin") -> None:
        file = self.root / folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        file.chmod(0o755)

    def write(self, file: str, text: str) -> None:
        (self.root / file).write_text(text)

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        path = f"{self.root / 'bin'}:{self.root / 'tools'}"
        environment = {"PATH": path, "HERE": str(self.root), "HOME": str(self.root)}
        command = [str(self.root / "constraints" / "environment.sh"), *arguments]
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
        # A shell cannot trap what it was started with ignored, as by another shell's `&`.
        listening = partial(signal.signal, signal.SIGINT, signal.SIG_DFL)
        process = subprocess.Popen(command, env=environment, start_new_session=True, preexec_fn=listening, **pipes)
        self.started.append(process)
        return self.started[-1]

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        process = self.start(*arguments)
        out, err = process.communicate(timeout=180)
        return subprocess.CompletedProcess(process.args, process.returncode, out, err)

    def wait_for(self, file: str) -> None:
        until = time.monotonic() + 180
        while not (self.root / file).exists():
            assert time.monotonic() < until, f"{file} did not come"
            time.sleep(0.01)

    def said(self, file: str) -> str:
        path = self.root / file
        return path.read_text() if path.exists() else ""


@pytest.fixture
def bare(tmp_path: Path) -> Iterator[Checkout]:
    """A checkout on a machine without Python."""
    (tmp_path / "constraints").mkdir()
    shutil.copy(ROOT / "constraints" / "environment.sh", tmp_path / "constraints")
    (tmp_path / "tools").mkdir()
    for tool in TOOLS.split():
        if found := shutil.which(tool):
            (tmp_path / "tools" / tool).symlink_to(found)
    made = Checkout(tmp_path)
    made.program("python-that-uv-fetched", PYTHON, ".")
    made.write("pyproject.toml", "[project]\n[tool.ruff]\n")
    made.write("constraints/host.txt", "torch==2.13.0             # via smscope\n")
    made.write("constraints/volta.txt", "")
    made.write("index", "torch (2.15.0)\nAvailable versions: 2.15.0, 2.13.0+cpu, 2.13.0\n")
    made.write("lane", "host\n")
    yield made
    for process in made.started:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()


@pytest.fixture
def checkout(bare: Checkout) -> Checkout:
    """The same on a machine with a Python that is new enough."""
    bare.program("python3.12", PYTHON)
    bare.program("python3", OLD_PYTHON.format(pip="exit 1"))
    return bare
