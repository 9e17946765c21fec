"""constraints/environment.sh: .venv is made with a Python that is new enough, and pip installs what a step needs."""

import os
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
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
        environment = {
            "PATH": f"{self.root / 'bin'}:{self.root / 'tools'}",
            "HERE": str(self.root),
            "HOME": str(self.root),
        }
        command = [str(self.root / "constraints" / "environment.sh"), *arguments]
        self.started.append(
            subprocess.Popen(
                command,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
                env=environment,
                start_new_session=True,
            )
        )
        return self.started[-1]

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        process = self.start(*arguments)
        out, err = process.communicate(timeout=60)
        return subprocess.CompletedProcess(process.args, process.returncode, out, err)

    def wait_for(self, file: str) -> None:
        until = time.monotonic() + 60
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
    made.write("index", "torch (2.15.0)\nAvailable versions: 2.15.0, 2.13.0+cpu, 2.13.0\n")
    made.write("lane", "host\n")
    yield made
    for process in made.started:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()


@pytest.fixture
def checkout(bare: Checkout) -> Checkout:
    """A checkout on a machine with a Python that is new enough."""
    bare.program("python3.12", PYTHON)
    bare.program("python3", OLD_PYTHON.format(pip="exit 1"))
    return bare


def test_a_step_is_installed_once_and_holds_those_before_it(checkout: Checkout) -> None:
    told = checkout.run("dev", "")
    assert (told.returncode, told.stderr) == (0, "")
    assert "installing for `dev` in lane host" in told.stdout and not checkout.said("uv_installs")
    for step in ("dev", "report", "bench"):
        again = checkout.run(step, "")
        assert (again.returncode, again.stdout, again.stderr) == (0, "", "")
    assert checkout.said("pip_calls") == HOST_DEV and checkout.said("lane_calls") == "\n"
    assert checkout.run("lab", "").returncode == 0
    assert checkout.said("pip_calls") == HOST_DEV + "constraints/host.txt --editable .[dev,twins,lab]\n"


@pytest.mark.parametrize(
    ("lane", "step", "extras"),
    [
        ("host", "bench", ""),
        ("host", "report", "[plots]"),
        ("volta", "bench", "[volta]"),
        ("volta", "dev", "[volta,dev]"),
        ("cuda", "bench", "[cuda]"),
        ("cuda", "report", "[cuda,plots]"),
        ("cuda", "lab", "[cuda,dev,lab]"),
    ],
)
def test_pip_is_asked_for_the_extras_of_the_step_by_the_pins_of_the_lane(
    checkout: Checkout, lane: str, step: str, extras: str
) -> None:
    checkout.write("lane", f"{lane}\n")
    assert checkout.run(step, "").returncode == 0
    assert checkout.said("pip_calls") == f"constraints/{lane}.txt --editable .{extras}\n"


@pytest.mark.skipif(os.uname().sysname != "Linux", reason="torch has wheels with CUDA on Linux only")
@pytest.mark.parametrize(("step", "extras"), [("dev", "dev,twins-cuda13"), ("lab", "dev,twins-cuda13,lab")])
def test_where_pip_finds_no_cpu_wheel_of_torch_the_pins_of_cuda_serve(
    checkout: Checkout, step: str, extras: str
) -> None:
    checkout.write("index", "torch (2.15.0)\nAvailable versions: 2.15.0, 12.13.0+cpu, 2.13.0, 2.12.0+cpu\n")
    assert checkout.run(step, "").returncode == 0
    assert checkout.said("pip_calls") == f"constraints/cuda.txt --editable .[{extras}]\n"
    assert checkout.run("bench", "host").stdout == ""


@pytest.mark.parametrize(
    ("file", "text", "calls"),
    [
        ("pyproject.toml", "[project]\n[tool.ruff]\nline-length = 120\n", 1),
        ("pyproject.toml", "[project]\nname = 'smscope'\n[tool.ruff]\n", 2),
        ("constraints/host.txt", "torch==2.13.1\n", 2),
        ("bin/nvidia-smi", "", 2),
    ],
    ids=["a tool's table", "the project's table", "a pin", "a driver"],
)
def test_what_decides_the_packages_makes_pip_look_again(checkout: Checkout, file: str, text: str, calls: int) -> None:
    assert checkout.run("bench", "").returncode == 0
    checkout.program(Path(file).name, text, str(Path(file).parent))
    assert checkout.run("bench", "").returncode == 0
    assert checkout.said("pip_calls") == HOST_BENCH * calls and checkout.said("lane_calls") == "\n" * calls


def test_the_downloads_that_take_time_are_shown_and_the_log_holds_all(checkout: Checkout) -> None:
    lines = (
        "Collecting scipy",
        "  Downloading scipy-1.17.1-cp312-linux.whl (35.2 MB)",
        "  Downloading rich-15.0.0-py3-none-any.whl (310 kB)",
        "  Downloading typer-0.29.2.whl (9.9 MB)",
        "Downloading torch-2.13.0-linux.whl (1.2 GB)",
        "Installing collected packages: scipy, rich",
    )
    checkout.write("pip", "cat <<'END'\n" + "\n".join(lines) + "\nEND\n")
    assert checkout.run("bench", "").stdout.splitlines()[1:-1] == [
        "  Downloading scipy-1.17.1-cp312-linux.whl (35.2 MB)",
        "  Downloading torch-2.13.0-linux.whl (1.2 GB)",
        "  Installing collected packages",
    ]
    assert checkout.said(".venv/pip.log").splitlines() == list(lines)


def test_where_pip_fails_its_last_lines_are_shown_and_the_next_one_tries_again(checkout: Checkout) -> None:
    checkout.write("pip", "echo 'Looking in indexes'; echo 'ERROR: No space left on device' >&2; exit 1")
    told = checkout.run("bench", "")
    assert told.returncode == 2
    *shown, sentence = told.stderr.splitlines()
    assert shown == ["Looking in indexes", "ERROR: No space left on device"]
    assert "pip could not install lane host" in sentence and ".venv/pip.log" in sentence
    assert ".venv is ready" not in told.stdout
    (checkout.root / "pip").unlink()
    assert checkout.run("bench", "").returncode == 0
    assert checkout.said("pip_calls") == HOST_BENCH * 2


def test_an_interrupted_set_up_is_finished_by_the_next_one(checkout: Checkout) -> None:
    checkout.write("pip", "touch begun; sleep 60")
    process = checkout.start("bench", "")
    checkout.wait_for("begun")
    os.killpg(process.pid, signal.SIGINT)
    assert "interrupted; the same command goes on" in process.communicate(timeout=60)[1]
    assert process.returncode == 2
    (checkout.root / "pip").unlink()
    (checkout.root / ".venv" / "fetched").touch()
    assert ".venv is ready" in checkout.run("bench", "").stdout
    assert checkout.said("pip_calls") == HOST_BENCH * 2 and (checkout.root / ".venv" / "fetched").exists()


def test_two_makes_at_once_take_turns(checkout: Checkout) -> None:
    if shutil.which("flock") is None:
        pytest.skip("this machine has no flock")
    checkout.write("pip", "touch begun; while [ ! -e go ]; do sleep 0.01; done")
    first = checkout.start("bench", "")
    checkout.wait_for("begun")
    second = checkout.start("bench", "")
    assert second.stdout is not None and "waiting" in second.stdout.readline()
    checkout.write("go", "")
    assert [process.wait(timeout=60) for process in (first, second)] == [0, 0]
    assert checkout.said("pip_calls") == HOST_BENCH


def test_another_lanes_environment_is_made_anew(checkout: Checkout) -> None:
    assert checkout.run("bench", "").returncode == 0
    checkout.write(".venv/old", "")
    told = checkout.run("bench", "cuda")
    assert told.returncode == 0 and "making .venv anew, since it holds lane host" in told.stdout
    assert checkout.said("pip_calls") == HOST_BENCH + "constraints/cuda.txt --editable .[cuda]\n"
    assert not (checkout.root / ".venv" / "old").exists()


def test_an_interrupted_set_up_of_another_lane_is_made_anew(checkout: Checkout) -> None:
    checkout.write("pip", "exit 1")
    assert checkout.run("bench", "cuda").returncode == 2
    (checkout.root / "pip").unlink()
    assert "making .venv anew, since it holds lane cuda" in checkout.run("bench", "host").stdout


def test_the_environment_of_a_gpu_serves_lane_host_and_no_other(checkout: Checkout) -> None:
    checkout.write("lane", "cuda\n")
    assert checkout.run("bench", "").returncode == 0
    assert checkout.run("bench", "host").stdout == ""
    assert checkout.run("bench", "").stdout == ""
    assert checkout.run("dev", "host").returncode == 0
    assert checkout.said("pip_calls").endswith("constraints/cuda.txt --editable .[cuda,dev]\n")
    assert "making .venv anew" in checkout.run("bench", "volta").stdout


def test_a_lane_that_was_asked_for_is_not_taken_for_what_was_found(checkout: Checkout) -> None:
    assert checkout.run("bench", "host").returncode == 0
    assert not checkout.said("lane_calls")
    checkout.write("lane", "cuda\n")
    assert "making .venv anew" in checkout.run("bench", "").stdout


def test_where_no_lane_serves_the_gpu_nothing_is_installed(checkout: Checkout) -> None:
    (checkout.root / "lane").unlink()  # so that its `cat` fails
    assert checkout.run("bench", "").returncode == 2
    assert not checkout.said("pip_calls")


def test_a_lane_that_does_not_exist_is_one_sentence(checkout: Checkout) -> None:
    told = checkout.run("bench", "hots")
    assert (told.returncode, told.stderr) == (2, "smscope: LANE=hots is none of host, volta and cuda.\n")


def test_python_3_10_installs_uv_in_a_corner_and_uv_makes_it(bare: Checkout) -> None:
    uv = FAKE_UV.format(venv=MAKES)
    install = f"mkdir -p .venv-uv/bin && cat > .venv-uv/bin/uv <<'END'\n{uv}END\nchmod +x .venv-uv/bin/uv"
    bare.program("python3", OLD_PYTHON.format(pip=install))
    told = bare.run("bench", "")
    assert (told.returncode, told.stderr) == (0, "")
    assert "here is Python 3.10.12, and none from 3.11 to 3.14 with venv; uv fetches Python 3.12" in told.stdout
    assert "--target .venv-uv" in bare.said("uv_installs")
    assert "--python 3.12 .venv" in bare.said("uv_calls")
    assert bare.said("pip_calls") == HOST_BENCH


def test_a_uv_on_the_path_is_used(bare: Checkout) -> None:
    bare.program("python3", OLD_PYTHON.format(pip="exit 1"))
    bare.program("uv", FAKE_UV.format(venv=MAKES))
    assert bare.run("bench", "").returncode == 0
    assert not bare.said("uv_installs") and bare.said("pip_calls") == HOST_BENCH


def test_a_new_enough_python_without_venv_leaves_it_to_uv(bare: Checkout) -> None:
    bare.program("python3", '#!/bin/sh\ncase "$*" in -m*) mkdir .venv; exit 1 ;; esac\n')
    bare.program("uv", FAKE_UV.format(venv=f"[ ! -e .venv ] && {MAKES}"))
    assert bare.run("bench", "").returncode == 0
    assert bare.said("pip_calls") == HOST_BENCH


@pytest.mark.parametrize(
    ("pip", "venv", "says"),
    [
        ("echo 'ERROR: No matching distribution found for uv' >&2; exit 1", None, "No matching distribution"),
        ("exit 1", FAILS, "Failed to download cpython"),
    ],
    ids=["no uv", "no interpreter"],
)
def test_where_the_fetch_fails_one_sentence_names_the_package(
    bare: Checkout, pip: str, venv: str | None, says: str
) -> None:
    bare.program("python3", OLD_PYTHON.format(pip=pip))
    if venv:
        bare.program("uv", FAKE_UV.format(venv=venv))
    told = bare.run("bench", "")
    assert told.returncode == 2 and told.stderr.count("\n") == 1
    assert says in told.stderr and "here is Python 3.10.12" in told.stderr
    assert "apt install python3.11 python3.11-venv" in told.stderr and "PYTHON=" in told.stderr
    assert not bare.said("pip_calls")


def test_without_any_python_it_is_said(bare: Checkout) -> None:
    told = bare.run("bench", "")
    assert told.returncode == 2 and "here is no python3" in told.stderr and told.stderr.count("\n") == 1


def test_an_environment_that_was_moved_is_made_anew(checkout: Checkout, tmp_path: Path) -> None:
    assert checkout.run("bench", "").returncode == 0
    activate = tmp_path / ".venv" / "bin" / "activate"
    activate.write_text(activate.read_text().replace(str(tmp_path), "/elsewhere"))
    assert checkout.run("bench", "").returncode == 0
    assert str(tmp_path) in activate.read_text() and checkout.said("pip_calls") == HOST_BENCH * 2


def test_an_environment_without_pip_is_made_anew(checkout: Checkout) -> None:
    assert checkout.run("bench", "").returncode == 0
    (checkout.root / ".venv" / "bin" / "pip").unlink()
    assert checkout.run("bench", "").returncode == 0
    assert checkout.said("pip_calls") == HOST_BENCH * 2


def test_an_environment_that_somebody_made_is_kept(checkout: Checkout) -> None:
    made = [str(checkout.root / "bin" / "python3.12"), "-m", "venv", ".venv"]
    subprocess.run(made, cwd=checkout.root, check=True)
    checkout.write(".venv/kept", "")
    assert checkout.run("bench", "").returncode == 0
    assert checkout.said("pip_calls") == HOST_BENCH and (checkout.root / ".venv" / "kept").exists()


def test_a_folder_that_is_no_environment_is_left_alone(checkout: Checkout) -> None:
    (checkout.root / ".venv").mkdir()
    checkout.write(".venv/thesis.tex", "years of work")
    told = checkout.run("bench", "")
    assert told.returncode == 2 and "holds no virtual environment; move it away" in told.stderr
    assert checkout.said(".venv/thesis.tex") == "years of work"
