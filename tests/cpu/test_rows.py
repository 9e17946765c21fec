"""microbench.results.rows: a run's file says everything once, and what comes back is what was measured."""

import json
from pathlib import Path

import numpy as np
import pytest

from microbench import paths
from microbench.probe import Sample
from microbench.results import frame, record
from microbench.results.record import Axes, Environment, Record, Run
from tests.cpu.test_record import ENVIRONMENT

SWEEP = {"p": Axes(family="f", axes=("size", "order"), units={"m_cycles": "cycles", "m_ns": "ns"})}
HERE = Environment(**ENVIRONMENT.model_dump(exclude={"probes"}), probes=SWEEP)
IDENTITY = {"run_id": "r1", "campaign": 0, "probe": "p", "family": "f", "method": "host"}


def row(metric: str = "m_cycles", value: float | None = 4.0, **more: object) -> Record:
    """A record of the probe p, as judge makes it."""
    interval = {"value": value, "low": value, "high": value, "point": {"size": 1, "order": "up"}, "status": "ok"}
    unit = metric.partition("_")[2]
    return Record.model_validate({**IDENTITY, "metric": metric, "unit": unit, **interval, **more})


def written(folder: Path, *records: Record, environment: Environment = HERE) -> list[str]:
    """The lines of a file that holds these records and nothing else."""
    file = folder / "r1.jsonl"
    record.append(file, environment, *records)
    return file.read_text().splitlines()


def again(folder: Path, *records: Record, environment: Environment = HERE) -> tuple[Record, ...]:
    """What is read of them."""
    (folder / "r1.jsonl").write_text(environment.model_dump_json(exclude_none=True) + "\n")
    written(folder, *records, environment=environment)
    return record.read(folder / "r1.jsonl").records


def test_a_usual_row_says_what_was_measured_and_nothing_else(tmp_path):
    assert written(tmp_path, row(n=9)) == [
        '{"campaign":0,"probe":"p","point":[1,"up"],"value":4,"n":9,"metric":"m_cycles"}'
    ]


ROWS = {
    "bounded": (row(bound_lower=2.0, bound="ok"),),
    "violated": (row(status="failed", reason="breaks", bound_lower=5.0, bound="violated", flags=("busy",)),),
    "refused": (row(value=None, status="unsupported", reason="too large", point={}),),
    "another method": (row(method="numba"), row(method="nvrtc")),
    "an interval": (row(low=3.5, high=4.5, clock_mhz=1980.25, seconds=0.125, registers=40, cubin_sha256="ab" * 32),),
    "two metrics": (row(seconds=0.5), row("m_ns", 2.0, status="throttled", flags=("throttled:power-cap",))),
    "one of two failed": (row(), row("m_ns", None, status="failed", reason="no m_ns")),
    "other points": (row(), row(point={"size": 2, "order": "up"}), row("m_ns", point={"size": 2, "order": "up"})),
    "an undeclared axis": (row(point={"size": 1}),),
    "an undeclared metric": (row("x_ns"),),
    "another probe": (row(probe="q", family="g"),),
    "a map": (row(values=(1.5, None, 4.0)), row("m_ns", values=((1.5, None), (None, 2.0)))),
}


@pytest.mark.parametrize("rows", ROWS.values(), ids=ROWS.keys())
def test_records_come_back_from_the_lines_of_their_points(tmp_path, rows):
    assert again(tmp_path, *rows) == rows


def test_the_metrics_of_a_point_share_a_line_and_a_damaged_one_costs_that_point(tmp_path):
    records = (row(), row("m_ns", 2.0), row(campaign=1), row("m_ns", 3.0, campaign=1))
    assert again(tmp_path, *records) == records
    file = tmp_path / "r1.jsonl"
    lines = file.read_text().splitlines()
    assert len(lines) == 3
    file.write_text("\n".join([lines[0], lines[1][:-9], lines[2]]) + "\n")
    run = record.read(file)
    assert run.records == records[2:] and [problem[:17] for problem in run.problems] == ["r1.jsonl, line 2:"]


@pytest.mark.parametrize("value", [1 / 3, 4.814304e12 / 7, 1e-9 / 3, 123456789012.5, 0.1 + 0.2])
def test_a_number_keeps_nine_digits_and_its_interval(tmp_path, value):
    (found,) = again(tmp_path, row(value=value, low=value * (1 - 1e-12), high=value * (1 + 1e-12)))
    assert found.value == pytest.approx(value, rel=1e-9)
    assert found.low is not None and found.value is not None and found.high is not None
    assert found.low <= found.value <= found.high


def test_points_are_kept_to_the_bit(tmp_path):
    declared = Axes(family="f", axes=("x",), units={"m_cycles": "cycles"})
    here = HERE.model_copy(update={"probes": {"p": declared}})
    wanted = row(point={"x": 0.1234567890123456})
    assert again(tmp_path, wanted, environment=here) == (wanted,)


# The committed runs, all of which a later reader must still have --------------------------------------------------

RUNS = sorted((paths.SHIPPED / "runs").glob("*/*.jsonl"))
LARGEST_ROW = 250
TIMED = 0.01234  # seconds of a point, where a run is older than that column


def with_header(run: Run) -> Environment:
    """The environment of a run as runs have it since schema 2: with what all records of a probe share."""
    told: dict[str, Axes] = dict(run.environment.probes)
    for each in run.records:
        before = told.get(each.probe, Axes(family=each.family, units={}))
        units = before.units | {each.metric: each.unit}
        told[each.probe] = Axes(family=each.family, axes=tuple(each.point) or before.axes, units=units)
    return run.environment.model_copy(update={"probes": told, "schema_version": 2})


@pytest.mark.parametrize("path", RUNS, ids=lambda path: path.stem)
def test_a_row_of_the_committed_runs_costs_under_250_bytes_and_loses_nothing(path, tmp_path):
    run = record.read(path)
    assert run.records and not run.problems
    environment = with_header(run)
    timed = tuple(each.model_copy(update={"seconds": each.seconds or TIMED}) for each in run.records)
    found = again(tmp_path, *timed, environment=environment)
    size = (tmp_path / "r1.jsonl").stat().st_size
    assert size / len(timed) < LARGEST_ROW or len(timed) < 1000, f"{size / len(timed):.0f} bytes a row"
    if run.environment.schema_version > 1 and len(timed) >= 1000:
        assert path.stat().st_size / len(timed) < LARGEST_ROW
    for one, other in zip(timed, found, strict=True):
        kept, told = one.model_dump(), other.model_dump()
        for name, value in kept.items():
            same = np.isclose(value, told[name], rtol=1e-9, atol=0) if isinstance(value, float) else value == told[name]
            assert same, (name, value, told[name])


# As a DataFrame ------------------------------------------------------------------------------------------------------


@pytest.fixture
def two_boards(data):
    """A run of each of two boards of a kind, with a map in one, and a probe more in the other."""
    for number, more in ((1, {"values": (1.0, 2.0)}), (2, {"probe": "q"})):
        told = {"uuid_sha256": f"{number}" * 16, "driver": "580", "nvrtc": "12.9.86", "power_limit_w": 700.0}
        here = HERE.model_copy(update={"gpu": "test-gpu", "run_id": f"r{number}", **told})
        file = data / "runs" / "test-gpu" / f"r{number}.jsonl"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(here.model_dump_json(exclude_none=True) + "\n")
        record.append(file, here, row(run_id=f"r{number}"), row("m_ns", run_id=f"r{number}", **more))
    return data


def test_a_frame_tells_machines_and_boards_apart(two_boards):
    runs = frame.load_runs("test-gpu")
    assert list(runs["board"]) == ["11111111"] * 2 + ["22222222"] * 2
    assert set(runs.groupby(["driver", "nvrtc", "sm_count", "started_utc"]).size()) == {4}
    assert set(runs["power_limit_w"]) == {700.0} and runs["clock_hz"].isna().all()
    assert set(runs["uuid_sha256"]) == {"1" * 16, "2" * 16}


def test_a_frame_holds_only_what_is_asked_for(two_boards):
    assert set(frame.load_runs(probe="q")["run_id"]) == {"r2"}
    assert len(frame.load_runs("test-gpu", ("p", "q"))) == 4
    with pytest.raises(record.DataError, match="No run of test-gpu holds a row of absent; `smscope list` names"):
        frame.load_runs("test-gpu", "absent")


def test_a_map_is_one_row_of_a_frame(two_boards):
    runs = frame.load_runs(probe="p")
    assert runs["values"].dropna().to_list() == [(1.0, 2.0)]


def test_what_a_map_lacks_is_none_in_its_record(tmp_path):
    from microbench.machine.arch import Machine, by_name
    from microbench.point import Point
    from microbench.probe import Metric, Probe
    from microbench.run.judge import judged
    from microbench.run.plan import Task
    from microbench.run.wire import Answer

    probe = Probe("?", ("host",), (Metric("m_cycles", "cycles"),), lambda *_: [], name="p", family="f")
    sample = Sample("m_cycles", 2.0, 1.0, 3.0, 5, values=((1.0, float("nan")), (2.0, 3.0)))
    machine = Machine("cpu", "CPU", by_name("host"), 2, None, None, 1 << 30, None)
    (found,) = judged("r1", Task(0, probe, "host", Point()), machine, Answer((sample,)))
    assert found.values == ((1.0, None), (2.0, 3.0))
    assert again(tmp_path, found)[0].values == found.values
    assert json.loads((tmp_path / "r1.jsonl").read_text().splitlines()[-1])["values"] == [[1, None], [2, 3]]
