"""microbench.results.record: whole lines or none, and a damaged line never takes the others with it."""

import errno
import os
import resource

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from microbench import files
from microbench.errors import DataError
from microbench.results import frame, record
from microbench.results.record import Environment, Finished, Record

MACHINE = {"gpu": "test-gpu", "name": "Test GPU", "arch": "host", "compute_capability": (0, 0), "sm_count": 2}
UNKNOWN = dict.fromkeys(("clock_hz", "dram_bytes_per_s", "l2_bytes"))
STARTED = {"run_id": "r1", "started_utc": "2026-01-01T00:00:00+00:00", "python": "3.11", "campaigns": 6}
ENVIRONMENT = Environment(**MACHINE, **UNKNOWN, **STARTED, dram_bytes=1 << 30)


def row(value: float = 4.0, **more: object) -> Record:
    fields = {"run_id": "r1", "campaign": 0, "probe": "p", "family": "f", "method": "host", "metric": "m_cycles"}
    return Record.model_validate({**fields, "unit": "cycles", "status": "ok", "value": value, **more})


@given(
    value=st.floats(allow_nan=False, allow_infinity=False),
    point=st.dictionaries(st.text(min_size=1), st.integers() | st.text() | st.floats(allow_nan=False)),
)
def test_a_record_comes_back_as_it_was_written(tmp_path_factory, value, point):
    file = tmp_path_factory.mktemp("run") / "run.jsonl"
    point = {name: at for name, at in point.items() if at not in (float("inf"), float("-inf"))}
    files.append(file, ENVIRONMENT, row(value, point=point))
    run = record.read(file)
    assert run.records[0].value == value and run.records[0].point == point and not run.finished


def test_a_corrupt_line_is_named_and_the_rest_loads(tmp_path):
    file = tmp_path / "run.jsonl"
    files.append(file, ENVIRONMENT, row(1.0))
    with file.open("a") as stream:
        stream.write('{"kind": "record", "run_id": \n[1, 2]\n{"kind": "record", "colour": "red"}\n')
    files.append(file, row(2.0), Finished(run_id="r1", finished_utc="later"))
    run = record.read(file)
    assert [r.value for r in run.records] == [1.0, 2.0] and run.finished
    assert [problem.split(":")[0] for problem in run.problems] == [f"run.jsonl, line {n}" for n in (3, 4, 5)]


def test_a_half_written_last_line_does_not_swallow_the_next_one(tmp_path):
    file = tmp_path / "run.jsonl"
    files.append(file, ENVIRONMENT, row(1.0))
    with file.open("a") as stream:
        stream.write('{"kind": "record", "run')
    files.append(file, row(2.0))
    run = record.read(file)
    assert [r.value for r in run.records] == [1.0, 2.0] and len(run.problems) == 1 and "line 3" in run.problems[0]


def test_where_a_line_was_cut_short_is_said_once(tmp_path):
    file = tmp_path / "run.jsonl"
    files.append(file, ENVIRONMENT)
    with file.open("a") as stream:
        stream.write('{"kind": "record", "run\n{"kind"\n')
    cut, bare = record.read(file).problems
    assert "not valid JSON (Unterminated string starting at column 20)" in cut
    assert "not valid JSON (Expecting ':' delimiter at column 8)" in bare


def test_without_an_environment_the_file_is_refused_by_name(tmp_path):
    file = tmp_path / "run.jsonl"
    files.append(file, row())
    with pytest.raises(DataError, match=r"run\.jsonl has no readable environment"):
        record.read(file)


@pytest.mark.parametrize(
    "fields",
    [
        {"status": "ok", "value": None},
        {"status": "failed"},
        {"value": float("nan")},
        {"value": float("inf")},
        {"hostname": "mine"},
    ],
)
def test_a_record_without_value_or_reason_or_with_more_is_refused(fields):
    with pytest.raises(ValidationError):
        row(**{"value": 1.0, **fields})  # type: ignore[arg-type]


def test_a_full_disk_leaves_whole_lines_only(tmp_path):
    """The kernel itself refuses to let the file grow, as a full disk does: first a short write, then none."""
    file = tmp_path / "run.jsonl"
    files.append(file, ENVIRONMENT, row(1.0))
    before = file.read_bytes()
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    import signal

    kept = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (len(before) + 40, hard))
    try:
        with pytest.raises(DataError, match=r"run\.jsonl.*what was measured before is kept"):
            files.append(file, row(2.0))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        signal.signal(signal.SIGXFSZ, kept)
    assert file.read_bytes() == before


def test_a_write_that_fails_outright_says_why(tmp_path, monkeypatch):
    file = tmp_path / "run.jsonl"
    files.append(file, ENVIRONMENT)
    before = file.read_bytes()

    def full(_: int, __: bytes) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "write", full)
    with pytest.raises(DataError, match="No space left on device"):
        files.append(file, row())
    assert file.read_bytes() == before


def test_runs_load_as_a_frame_with_a_column_per_axis(data):
    file = data / "runs" / "test-gpu" / "r1.jsonl"
    files.append(file, ENVIRONMENT, row(1.0, point={"size": 1}), row(2.0, point={"size": 2}))
    found = frame.load_runs("test-gpu")
    assert list(found["value"]) == [1.0, 2.0] and list(found["point.size"]) == [1, 2]
    assert set(found["gpu"]) == {"test-gpu"}


def test_an_unreadable_line_is_warned_of_when_runs_load(data):
    file = data / "runs" / "test-gpu" / "r1.jsonl"
    files.append(file, ENVIRONMENT, row(1.0))
    with file.open("a") as stream:
        stream.write("{\n")
    with pytest.warns(UserWarning, match=r"r1\.jsonl, line 3"):
        assert len(frame.load_runs("test-gpu")) == 1


def test_a_later_row_answers_one_that_failed_without_a_number_and_no_other(tmp_path):
    file = tmp_path / "run.jsonl"
    lost = row(None, status="failed", reason="its worker was ended by SIGKILL")  # type: ignore[arg-type]
    refused = row(1.0, status="failed", reason="breaks its bound", point={"size": 1})
    files.append(file, ENVIRONMENT, lost, refused, lost, row(4.0), row(5.0, point={"size": 1}))
    assert record.read(file).records == (refused, row(4.0), row(5.0, point={"size": 1}))
    files.append(file, lost)
    assert record.read(file).records[-1] == lost
