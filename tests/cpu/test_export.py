"""`export`: every row of every run as one table, or one sentence why not."""

from importlib import machinery
from pathlib import Path

import pandas as pd
import pytest

from microbench.cli import exporting
from microbench.errors import DataError, EnvironmentLacks, InputError
from microbench.results import frame
from tests.cpu.test_cli import call
from tests.cpu.test_rows import two_boards  # noqa: F401  a fixture


def test_csv_has_a_row_a_record_and_both_boards_of_a_kind(two_boards, tmp_path, capsys):  # noqa: F811
    file = tmp_path / "deep" / "runs.csv"
    code, out, _ = call(capsys, "export", "test-gpu", "--csv", str(file))
    assert (code, out.startswith("Wrote 4 rows of 2 boards to ")) == (0, True)
    read = pd.read_csv(file)
    assert list(read.columns) == list(frame.load_runs().columns) and len(read) == 4
    assert set(read["board"]) == {11111111, 22222222} and set(read["driver"]) == {580}
    assert read["values"].dropna().to_list() == ["[1.0, 2.0]"]
    call(capsys, "export", "--csv", str(file), "--only", "q")
    assert set(pd.read_csv(file)["probe"]) == {"q"}


def test_a_folder_that_export_makes_is_said_and_one_that_is_there_is_not(two_boards, tmp_path, capsys):  # noqa: F811
    file = tmp_path / "deep" / "er" / "runs.csv"
    _, out, _ = call(capsys, "export", "test-gpu", "--csv", str(file))
    assert f"Made the folder {file.parent}." in "".join(out.splitlines()) and file.is_file()
    _, out, _ = call(capsys, "export", "test-gpu", "--csv", str(file))
    assert "Made" not in out


def test_a_folder_that_is_a_file_is_one_sentence(two_boards, tmp_path):  # noqa: F811
    (tmp_path / "taken").write_text("")
    with pytest.raises(DataError, match=r"Could not write .*runs\.csv: File exists; name another file"):
        exporting.export(csv=tmp_path / "taken" / "runs.csv")


def test_an_unknown_probe_is_refused_beside_a_known_one_too(two_boards, tmp_path, capsys):  # noqa: F811
    file = tmp_path / "runs.csv"
    for known in ((), ("--only", "q"), ("--only", "ffma_latency")):
        code, out, err = call(capsys, "export", "--csv", str(file), *known, "--only", "ffma_latenzy")
        assert (code, out, file.exists()) == (2, "", False)
        assert "No probe is called 'ffma_latenzy'; did you mean" in err and err.count("\n") == 1
    code, _, err = call(capsys, "export", "--csv", str(file), "--only", "ffma_latency")
    assert code == 1 and "No run holds a row of ffma_latency" in err


def test_an_axis_of_words_and_numbers_is_text_and_a_flag_keeps_its_words():
    given = {"point.n": [1, "all", None], "flags": [("busy", "stolen"), (), ("busy",)], "value": [1.0, 2.0, 3.0]}
    out = exporting.flat(pd.DataFrame(given))
    assert out["point.n"].to_list()[:2] == ["1", "all"] and out["point.n"].isna().to_list() == [False, False, True]
    assert out["flags"].to_list() == ["busy; stolen", "", "busy"]


def test_parquet_without_pyarrow_says_what_to_install(two_boards, tmp_path, monkeypatch):  # noqa: F811
    monkeypatch.setattr(exporting, "find_spec", lambda _: None)
    with pytest.raises(EnvironmentLacks, match=r"Parquet needs pyarrow.*pip install pyarrow"):
        exporting.export(parquet=tmp_path / "runs.parquet")
    assert not list(tmp_path.glob("*.parquet"))


def test_parquet_is_what_pandas_writes_of_the_same_rows(two_boards, tmp_path, monkeypatch):  # noqa: F811
    written = {}
    monkeypatch.setattr(exporting, "find_spec", lambda name: machinery.ModuleSpec(name, None))
    monkeypatch.setattr(pd.DataFrame, "to_parquet", lambda self, file, **_: written.update({file: self}))
    exporting.export(parquet=tmp_path / "runs.parquet")
    (rows,) = written.values()
    assert len(rows) == 4 and not any(isinstance(value, (tuple, list)) for value in rows.to_numpy().flat)


@pytest.mark.parametrize("given", [{}, {"csv": "a.csv", "parquet": "a.parquet"}], ids=["none", "both"])
def test_exactly_one_file_is_named(data, given):
    with pytest.raises(InputError, match="Name one file"):
        exporting.export(**given)


def test_a_file_that_cannot_be_written_is_one_sentence(two_boards):  # noqa: F811
    with pytest.raises(DataError, match=r"Could not write .*full: No space left on device"):
        exporting.export(csv=Path("/dev/full"))
