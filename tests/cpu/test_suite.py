"""microbench.run.suite as on a GPU: points in one message, the next worker ahead, and one fault costs one point."""

import os
import subprocess
import time
from collections import Counter

import pytest

from microbench import run as runner
from microbench.results import record
from microbench.run import spent
from microbench.run.crew import Crew
from microbench.run.remote import RemoteWorker
from microbench.run.suite import Suite
from tests.cpu.test_run import options


@pytest.fixture
def as_on_a_gpu(data, monkeypatch):
    """This CPU, treated as a GPU of a machine with cores to spare."""
    monkeypatch.setattr(Suite, "batches", True)
    monkeypatch.setattr(Crew, "runs_ahead", True)


def workers(rows: list[record.Record]) -> list[str]:
    return [flag for row in rows for flag in row.flags if flag.startswith("worker:")]


def test_a_point_that_hangs_costs_itself_and_a_fresh_worker_has_the_rest(as_on_a_gpu, tmp_path):
    rows = list(runner.run(options(tmp_path, "hangs_once")).run.records)
    assert Counter(row.point["size"] for row in rows) == dict.fromkeys(range(1, 6), 1)
    (hung,) = (row for row in rows if row.status == "failed")
    assert hung.point["size"] == 2 and hung.reason == "no answer within 0.5 s; its worker was ended"
    assert hung.seconds is not None and hung.seconds >= 0.5
    at = rows.index(hung)
    assert len(set(workers(rows[:at]))) <= 1 and len(set(workers(rows[at + 1 :]))) <= 1
    assert not set(workers(rows[:at])) & set(workers(rows[at + 1 :]))


def test_a_probe_that_breaks_its_worker_is_given_up_in_batches_too(as_on_a_gpu, tmp_path):
    outcome = runner.run(options(tmp_path, "breaks_context", "steady"))
    reasons = Counter(row.reason for row in outcome.run.records)
    assert reasons == {
        "an illegal address; the context is broken": runner.MAX_BREAKAGES,
        "not tried: breaks_context ended 3 workers before": 2,
        None: 3,
    }


def test_the_points_of_a_probe_are_one_message(as_on_a_gpu, tmp_path, monkeypatch):
    asked, real = [], RemoteWorker.ask

    def ask(self, tasks):
        asked.append((tasks[0].probe.name, len(tasks)))
        return real(self, tasks)

    monkeypatch.setattr(RemoteWorker, "ask", ask)
    runner.run(options(tmp_path, "steady", "skips", "slow"))
    assert sorted(asked) == [("skips", 1), ("slow", 30), ("steady", 3)]


def test_the_next_worker_waits_with_its_device_shut_until_the_one_before_has_ended(as_on_a_gpu, tmp_path, monkeypatch):
    events: list[tuple[str, int]] = []
    start, real = RemoteWorker.__init__, RemoteWorker.open

    def spawn(self, *arguments):
        start(self, *arguments)
        events.append(("start", self._process.pid))

    def opening(self):
        gone = [pid for what, pid in events if what == "open"]
        assert not any(os.path.exists(f"/proc/{pid}") for pid in gone), "another worker still has its device"
        events.append(("open", self._process.pid))
        return real(self)

    monkeypatch.setattr(RemoteWorker, "__init__", spawn)
    monkeypatch.setattr(RemoteWorker, "open", opening)
    runner.run(options(tmp_path, "steady", campaigns=3))
    opened = [pid for what, pid in events if what == "open"]
    assert len(opened) == len(set(opened)) == 3 and Counter(what for what, _ in events)["start"] == 3
    started = [events.index(("start", pid)) for pid in opened]
    assert started[1] < events.index(("open", opened[0])) and started[2] < events.index(("open", opened[1]))
    assert not any(os.path.exists(f"/proc/{pid}") for pid in opened)


def test_a_next_worker_that_died_while_it_waited_is_replaced(as_on_a_gpu, tmp_path, monkeypatch):
    real = Crew.relieve

    def murdered(self):
        if self._spare is not None:
            self._spare._process.kill()
            self._spare._process.wait()
        real(self)

    monkeypatch.setattr(Crew, "relieve", murdered)
    assert runner.run(options(tmp_path, "steady", campaigns=2)).statuses == {"ok": 6}


def test_on_a_cpu_nothing_runs_beside_a_measurement(data, tmp_path, monkeypatch):
    alive: list[int] = []
    real = subprocess.Popen.__init__
    running: list[subprocess.Popen] = []

    def counted(self, *arguments, **more):
        alive.append(sum(each.poll() is None for each in running))
        running.append(self)
        real(self, *arguments, **more)

    monkeypatch.setattr("microbench.machine.stamp.commit", lambda: type("C", (), {"sha": None, "dirty": None})())
    monkeypatch.setattr(subprocess.Popen, "__init__", counted)
    runner.run(options(tmp_path, "steady", campaigns=3))
    assert alive == [0, 0, 0]


def test_each_row_says_what_its_point_took_and_the_run_where_its_time_went(data, tmp_path):
    began = time.perf_counter()
    run = runner.run(options(tmp_path, "slow", "steady")).run
    wall = time.perf_counter() - began
    assert all(row.seconds is not None and row.seconds >= 0.05 for row in run.records if row.probe == "slow")
    seconds = spent.by_probe(run)
    assert list(seconds) == ["slow", "steady"] and 30 * 0.05 <= seconds["slow"] < wall
    assert run.spent is not None and sum(seconds.values()) + run.spent.starting_s <= run.spent.wall_s <= wall
    line = spent.told(run)
    assert line is not None and line.startswith(f"Time:    {run.spent.wall_s:.1f} s: compiling 0.0, starting workers ")
    assert f"(slow {seconds['slow']:.1f}, steady " in line
    assert spent.told(run.model_copy(update={"spent": None})) is None


def test_the_metrics_of_a_point_share_its_time(data):
    def row(metric: str) -> record.Record:
        said = {"run_id": "r", "campaign": 0, "probe": "p", "family": "f", "method": "host", "unit": "ns"}
        return record.Record.model_validate({**said, "metric": metric, "status": "ok", "value": 1, "seconds": 2.5})

    from tests.cpu.test_rows import HERE

    run = record.Run(path=data, environment=HERE, records=(row("a_ns"), row("b_ns")))
    assert spent.by_probe(run) == {"p": 2.5}
