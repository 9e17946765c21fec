"""`doctor` as a person types it: a sentence and exit code 2 where it cannot look."""

from pathlib import Path

import pytest

from microbench.cli import main
from tests.cpu.commands import called


@pytest.mark.parametrize("text", ["", "no run at all\n", '{"kind": "record"}\n'])
def test_a_file_that_is_no_run_is_said_and_nothing_is_judged(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str
) -> None:
    file = tmp_path / "a.jsonl"
    file.write_text(text)
    code, out, err = called(capsys, main, "doctor", "--run", str(file), "--json")
    assert (code, out) == (2, "") and err.startswith("a.jsonl is no run that can be read: ")


def test_without_a_gpu_it_says_what_can_be_done(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("microbench.machine.nvml.visible_gpus", list)
    code, out, err = called(capsys, main, "doctor")
    assert (code, out) == (2, "") and err.startswith("There is no NVIDIA GPU to look at here (") and "--run FILE" in err
