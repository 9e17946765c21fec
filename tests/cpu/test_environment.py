"""constraints/environment.sh: pip installs into .venv what a step needs, once."""

import os
import shutil
import signal
from pathlib import Path

import pytest

from tests.cpu.bare_checkout import HOST_BENCH, HOST_DEV


def test_a_step_is_installed_once_and_holds_those_before_it(checkout):
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
def test_pip_is_asked_for_the_extras_of_the_step_by_the_pins_of_the_lane(checkout, lane, step, extras):
    checkout.write("lane", f"{lane}\n")
    assert checkout.run(step, "").returncode == 0
    assert checkout.said("pip_calls") == f"constraints/{lane}.txt --editable .{extras}\n"


@pytest.mark.skipif(os.uname().sysname != "Linux", reason="NVRTC's wheels are for Linux")
@pytest.mark.parametrize(("lane", "step", "calls"), [("host", "dev", 1), ("host", "report", 0), ("volta", "dev", 0)])
def test_tests_have_the_compiler_of_voltas_lane_beside_their_own(checkout, lane, step, calls):
    checkout.write("lane", f"{lane}\n")
    checkout.write("constraints/volta.txt", "nvidia-cuda-nvrtc-cu12==12.8.93  # via smscope\n")
    assert checkout.run(step, "").returncode == 0
    asked = "--no-deps --target .venv/nvrtc/12.8.93 nvidia-cuda-nvrtc-cu12==12.8.93\n"
    assert checkout.said("pip_calls").count(asked) == calls


@pytest.mark.skipif(os.uname().sysname != "Linux", reason="torch has wheels with CUDA on Linux only")
@pytest.mark.parametrize(("step", "extras"), [("dev", "dev,twins-cuda13"), ("lab", "dev,twins-cuda13,lab")])
def test_where_pip_finds_no_cpu_wheel_of_torch_the_pins_of_cuda_serve(checkout, step, extras):
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
def test_what_decides_the_packages_makes_pip_look_again(checkout, file, text, calls):
    assert checkout.run("bench", "").returncode == 0
    checkout.program(Path(file).name, text, str(Path(file).parent))
    assert checkout.run("bench", "").returncode == 0
    assert checkout.said("pip_calls") == HOST_BENCH * calls and checkout.said("lane_calls") == "\n" * calls


def test_the_downloads_that_take_time_are_shown_and_the_log_holds_all(checkout):
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


def test_where_pip_fails_its_last_lines_are_shown_and_the_next_one_tries_again(checkout):
    checkout.write("pip", "echo 'Looking in indexes'; echo 'ERROR: No space left on device' >&2; exit 1")
    told = checkout.run("bench", "")
    assert told.returncode == 2
    *shown, sentence = told.stderr.splitlines()
    assert shown == ["Looking in indexes", "ERROR: No space left on device"]
    assert "pip could not install lane host" in sentence and ".venv/pip.log" in sentence
    assert ".venv is ready" not in told.stdout
    (checkout.root / "pip").unlink()
    assert checkout.run("bench", "").returncode == 0 and checkout.said("pip_calls") == HOST_BENCH * 2


def test_an_interrupted_set_up_is_finished_by_the_next_one(checkout):
    checkout.write("pip", "touch begun; sleep 60")
    process = checkout.start("bench", "")
    checkout.wait_for("begun")
    os.killpg(process.pid, signal.SIGINT)
    assert "interrupted; the same command goes on" in process.communicate(timeout=180)[1] and process.returncode == 2
    (checkout.root / "pip").unlink()
    (checkout.root / ".venv" / "fetched").touch()
    assert ".venv is ready" in checkout.run("bench", "").stdout
    assert checkout.said("pip_calls") == HOST_BENCH * 2 and (checkout.root / ".venv" / "fetched").exists()


def test_two_makes_at_once_take_turns(checkout):
    if shutil.which("flock") is None:
        pytest.skip("this machine has no flock")
    checkout.write("pip", "touch begun; while [ ! -e go ]; do sleep 0.01; done")
    first = checkout.start("bench", "")
    checkout.wait_for("begun")
    second = checkout.start("bench", "")
    assert second.stdout is not None and "waiting" in second.stdout.readline()
    checkout.write("go", "")
    assert [process.wait(timeout=180) for process in (first, second)] == [0, 0]
    assert checkout.said("pip_calls") == HOST_BENCH


def test_another_lanes_environment_is_made_anew(checkout):
    assert checkout.run("bench", "").returncode == 0
    checkout.write(".venv/old", "")
    told = checkout.run("bench", "cuda")
    assert told.returncode == 0 and "making .venv anew, since it holds lane host" in told.stdout
    assert checkout.said("pip_calls") == HOST_BENCH + "constraints/cuda.txt --editable .[cuda]\n"
    assert not (checkout.root / ".venv" / "old").exists()


def test_an_interrupted_set_up_of_another_lane_is_made_anew(checkout):
    checkout.write("pip", "exit 1")
    assert checkout.run("bench", "cuda").returncode == 2
    (checkout.root / "pip").unlink()
    assert "making .venv anew, since it holds lane cuda" in checkout.run("bench", "host").stdout


def test_the_environment_of_a_gpu_serves_lane_host_and_no_other(checkout):
    checkout.write("lane", "cuda\n")
    assert checkout.run("bench", "").returncode == 0 and checkout.run("bench", "host").stdout == ""
    assert checkout.run("bench", "").stdout == "" and checkout.run("dev", "host").returncode == 0
    assert checkout.said("pip_calls").endswith("constraints/cuda.txt --editable .[cuda,dev]\n")
    assert "making .venv anew" in checkout.run("bench", "volta").stdout


def test_a_lane_that_was_asked_for_is_not_taken_for_what_was_found(checkout):
    assert checkout.run("bench", "host").returncode == 0 and not checkout.said("lane_calls")
    checkout.write("lane", "cuda\n")
    assert "making .venv anew" in checkout.run("bench", "").stdout


def test_where_no_lane_serves_the_gpu_nothing_is_installed(checkout):
    (checkout.root / "lane").unlink()  # so that its `cat` fails
    assert checkout.run("bench", "").returncode == 2 and not checkout.said("pip_calls")


def test_a_lane_that_does_not_exist_is_one_sentence(checkout):
    told = checkout.run("bench", "hots")
    assert (told.returncode, told.stderr) == (2, "smscope: LANE=hots is none of host, volta and cuda.\n")
