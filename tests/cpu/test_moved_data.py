"""SMSCOPE_DATA stands for data/ as a whole: where it names a wrong folder, the sentence says so."""

from pathlib import Path

import pytest

from microbench import files, paths
from microbench.errors import DataError
from microbench.results.record import Finished
from tests.elsewhere import ROOT, python


@pytest.mark.parametrize("arguments", [("picks",), ("explain", "--gpu", "a100"), ("show", "h100-sxm-80gb")])
def test_a_folder_without_the_shipped_data_is_named_with_its_variable(tmp_path: Path, arguments: tuple[str]) -> None:
    told = python("-m", "smscope", *arguments, cwd=ROOT, SMSCOPE_DATA=str(tmp_path), CUDA_VISIBLE_DEVICES="")
    assert told.returncode and not told.stdout and told.stderr.count("\n") == 1
    assert f"SMSCOPE_DATA names {tmp_path}, which stands for data/ as a whole" in told.stderr


def test_a_run_that_cannot_be_written_names_its_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "runs" / "gpu"
    (folder / "r1.jsonl").mkdir(parents=True)
    for moved, said in ((None, "directory."), (tmp_path, f"SMSCOPE_DATA names {tmp_path}, ")):
        monkeypatch.setattr(paths, "MOVED", moved)
        with pytest.raises(DataError) as refused:
            files.append(folder / "r1.jsonl", Finished(run_id="r1", finished_utc="later"))
        assert f"r1.jsonl in {folder}" in str(refused.value) and said in str(refused.value)
