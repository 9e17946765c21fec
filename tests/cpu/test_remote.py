"""microbench.run.remote: a worker that does not start is tried once more where it died, and then told plainly."""

import subprocess
import sys
from collections import Counter

import pytest

from microbench import run as runner
from microbench.errors import DeviceError
from tests.cpu.test_run import options


def test_a_worker_that_cannot_be_spawned_is_one_sentence(data, tmp_path, monkeypatch):
    program = tmp_path / "python"
    program.touch(mode=0o600)
    monkeypatch.setattr(sys, "executable", str(program))
    with pytest.raises(DeviceError, match="could not be started: Permission denied"):
        runner.run(options(tmp_path, "steady"))


@pytest.mark.parametrize("deaths", [1, 2])
def test_a_worker_killed_at_its_start_gets_a_second_try(data, tmp_path, monkeypatch, deaths):
    real, started = subprocess.Popen, Counter[str]()

    def mortal(command: list[str], **more: object) -> subprocess.Popen[bytes]:
        started["workers"] += 1
        dies = started["workers"] <= deaths
        return real(["/bin/sh", "-c", "kill -9 $$"] if dies else command, **more)  # type: ignore[call-overload,no-any-return]

    monkeypatch.setattr(subprocess, "Popen", mortal)
    wanted = options(tmp_path, "steady")
    if deaths == 1:
        assert runner.run(wanted).statuses == {"ok": 3}
    else:
        with pytest.raises(DeviceError, match="died twice at its start: its worker was ended by SIGKILL"):
            runner.run(wanted)
