"""constraints/environment.sh: .venv is made with a Python that is new enough, by uv where there is none."""

import subprocess

import pytest

from tests.cpu.bare_checkout import FAILS, FAKE_UV, HOST_BENCH, MAKES, OLD_PYTHON


def test_python_3_10_installs_uv_in_a_corner_and_uv_makes_it(bare):
    uv = FAKE_UV.format(venv=MAKES)
    install = f"mkdir -p .venv-uv/bin && cat > .venv-uv/bin/uv <<'END'\n{uv}END\nchmod +x .venv-uv/bin/uv"
    bare.program("python3", OLD_PYTHON.format(pip=install))
    told = bare.run("bench", "")
    assert (told.returncode, told.stderr) == (0, "")
    assert "here is Python 3.10.12, and none from 3.11 to 3.14 with venv; uv fetches Python 3.12" in told.stdout
    assert "--target .venv-uv" in bare.said("uv_installs") and "--python 3.12 .venv" in bare.said("uv_calls")
    assert bare.said("pip_calls") == HOST_BENCH


def test_a_uv_on_the_path_is_used(bare):
    bare.program("python3", OLD_PYTHON.format(pip="exit 1"))
    bare.program("uv", FAKE_UV.format(venv=MAKES))
    assert bare.run("bench", "").returncode == 0
    assert not bare.said("uv_installs") and bare.said("pip_calls") == HOST_BENCH


def test_a_new_enough_python_without_venv_leaves_it_to_uv(bare):
    bare.program("python3", '#!/bin/sh\ncase "$*" in -m*) mkdir .venv; exit 1 ;; esac\n')
    bare.program("uv", FAKE_UV.format(venv=f"[ ! -e .venv ] && {MAKES}"))
    assert bare.run("bench", "").returncode == 0 and bare.said("pip_calls") == HOST_BENCH


@pytest.mark.parametrize(
    ("pip", "venv", "says"),
    [
        ("echo 'ERROR: No matching distribution found for uv' >&2; exit 1", None, "No matching distribution"),
        ("exit 1", FAILS, "Failed to download cpython"),
    ],
    ids=["no uv", "no interpreter"],
)
def test_where_the_fetch_fails_one_sentence_names_the_package(bare, pip, venv, says):
    bare.program("python3", OLD_PYTHON.format(pip=pip))
    if venv:
        bare.program("uv", FAKE_UV.format(venv=venv))
    told = bare.run("bench", "")
    assert told.returncode == 2 and told.stderr.count("\n") == 1
    assert says in told.stderr and "here is Python 3.10.12" in told.stderr
    assert "apt install python3.11 python3.11-venv" in told.stderr and "PYTHON=" in told.stderr
    assert not bare.said("pip_calls")


def test_without_any_python_it_is_said(bare):
    told = bare.run("bench", "")
    assert told.returncode == 2 and "here is no python3" in told.stderr and told.stderr.count("\n") == 1


def test_an_environment_that_was_moved_is_made_anew(checkout, tmp_path):
    assert checkout.run("bench", "").returncode == 0
    activate = tmp_path / ".venv" / "bin" / "activate"
    activate.write_text(activate.read_text().replace(str(tmp_path), "/elsewhere"))
    assert checkout.run("bench", "").returncode == 0
    assert str(tmp_path) in activate.read_text() and checkout.said("pip_calls") == HOST_BENCH * 2


def test_an_environment_without_pip_is_made_anew(checkout):
    assert checkout.run("bench", "").returncode == 0
    (checkout.root / ".venv" / "bin" / "pip").unlink()
    assert checkout.run("bench", "").returncode == 0 and checkout.said("pip_calls") == HOST_BENCH * 2


def test_an_environment_that_somebody_made_is_kept(checkout):
    subprocess.run([str(checkout.root / "bin" / "python3.12"), "-m", "venv", ".venv"], cwd=checkout.root, check=True)
    checkout.write(".venv/kept", "")
    assert checkout.run("bench", "").returncode == 0
    assert checkout.said("pip_calls") == HOST_BENCH and (checkout.root / ".venv" / "kept").exists()


def test_a_folder_that_is_no_environment_is_left_alone(checkout):
    (checkout.root / ".venv").mkdir()
    checkout.write(".venv/thesis.tex", "years of work")
    told = checkout.run("bench", "")
    assert told.returncode == 2 and "holds no virtual environment; move it away" in told.stderr
    assert checkout.said(".venv/thesis.tex") == "years of work"
