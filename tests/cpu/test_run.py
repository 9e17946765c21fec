"""microbench.run: whatever a probe does, every row is written, and a run goes on where it was interrupted."""

import os
import signal
from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest

from microbench import run as runner
from microbench.errors import BusyError, DataError, sentence
from microbench.machine.arch import Machine, by_name
from microbench.point import Point
from microbench.probe import Sample
from microbench.probes import discover, named
from microbench.results import record
from microbench.results.doubt import Doubt
from microbench.results.record import Record, Run
from microbench.run import lock, plan
from microbench.run.judge import judged
from microbench.run.plan import Task
from microbench.run.wire import Answer
from tests.cpu import fake_probes
from tests.cpu.typed_run import DRIVER, start, wait_for_rows
from tests.elsewhere import ROOT, printed

MACHINE = Machine("cpu", "CPU", by_name("host"), 2, None, None, 1 << 30, None)


def options(folder: Path, *names: str, **more: object) -> runner.Options:
    """A run of these fake probes on this machine."""
    fake_probes.write(folder, *names)
    fields = {"device": "host", "probes": discover(folder), "folders": (folder,), "only": tuple(sorted(names))}
    return runner.Options(**{**fields, "campaigns": 1, **more})  # type: ignore[arg-type]


BAD = ("hangs", "crashes", "raises", "gives_nan", "too_fast", "throttled", "skips", "gpu_only", "steady")


@pytest.fixture(scope="module")
def bad_run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """One run over every kind of bad probe, with a good one among them."""
    folder = tmp_path_factory.mktemp("bad")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("microbench.paths.writable_data", lambda: folder / "data")
        return runner.run(options(folder / "probes", *BAD)).run


def rows(run: Run, probe: str) -> list[Record]:
    return [row for row in run.records if row.probe == probe]


@pytest.mark.parametrize(
    ("probe", "status", "reason"),
    [
        ("hangs", "failed", "no answer within 0.3 s; its worker was ended"),
        ("crashes", "failed", "its worker ended with exit code 7"),
        ("raises", "failed", "ValueError: no file list.txt (raises.py:15)"),
        ("gives_nan", "failed", "latency_cycles is not a number: nan in [nan, nan]"),
        ("too_fast", "failed", "1.90476 cycles breaks its bound (at least 2 cycles: a load takes two clocks)"),
        ("throttled", "ok", None),
        ("steady", "ok", None),
    ],
)
def test_every_fault_is_a_row_with_its_reason(bad_run, probe, status, reason):
    found = rows(bad_run, probe)
    assert {row.status for row in found} == {status} and {row.reason for row in found} == {reason}


def test_the_suite_goes_on_after_each_of_them(bad_run):
    assert bad_run.finished and {row.probe for row in bad_run.records} == set(BAD)
    assert {row.point["size"]: row.value for row in rows(bad_run, "steady")} == {1: 5.0, 2: 6.0, 3: 7.0}


def test_a_value_past_its_bound_is_kept_for_the_reader_and_marked(bad_run):
    (row,) = rows(bad_run, "too_fast")
    assert (row.bound, row.bound_lower, row.value) == ("violated", 2.0, pytest.approx(2 / 1.05))


def test_a_probe_for_another_architecture_is_one_unsupported_row(bad_run):
    (row,) = rows(bad_run, "gpu_only")
    assert row.status == "unsupported" and row.reason is not None and row.reason.startswith("needs an NVIDIA GPU; ")
    assert row.reason.endswith(" is host")


def test_a_point_that_does_not_fit_is_unsupported_and_the_others_run(bad_run):
    assert {row.point["size"]: (row.status, row.reason) for row in rows(bad_run, "skips")} == {
        1: ("ok", None),
        2: ("unsupported", "too large"),
    }


def test_a_run_file_names_no_folder_of_this_machine(bad_run):
    text = bad_run.path.read_text()
    assert str(Path.home()) not in text.replace(str(Path("/")), "/") or str(Path.home()) == "/"
    assert "someone" not in text and str(bad_run.path.parent) not in text


def test_a_probe_that_breaks_worker_after_worker_is_given_up(data, tmp_path):
    outcome = runner.run(options(tmp_path, "breaks_context"))
    reasons = Counter(row.reason for row in outcome.run.records)
    assert not outcome.measured
    assert reasons == {
        "an illegal address; the context is broken": runner.MAX_BREAKAGES,
        "not tried: breaks_context ended 3 workers before": 2,
    }


def planned(run_id: str, quick: bool = True, **more: object) -> plan.Plan:
    """Every probe of the suite, as if this CPU could run it."""
    probes = tuple(replace(probe, archs=("host",)) for probe in discover())
    return plan.Plan(run_id, probes, MACHINE, quick=quick, **more)  # type: ignore[arg-type]


def keys(tasks: Iterable[Task]) -> list[plan.Key]:
    return [task.key for task in tasks]


def test_each_campaign_and_each_run_has_an_order_of_its_own_that_never_changes():
    orders = [keys(planned(run).tasks(campaign)) for run in ("a", "b") for campaign in range(6)]
    assert len({tuple(key[1:] for key in order) for order in orders}) == 12
    assert orders == [keys(planned(run).tasks(campaign)) for run in ("a", "b") for campaign in range(6)]
    assert len({frozenset(key[1:] for key in order) for order in orders}) == 1, "the same tasks in each"


def test_a_probes_tasks_stay_together_and_its_points_are_shuffled():
    tasks = planned("a", quick=False).tasks(0)
    names = [task.probe.name for task in tasks]
    assert sum(name != before for name, before in pairwise(names)) == len(set(names)) - 1
    mine = [task.point for task in tasks if task.probe.name == "memory_latency"]
    assert sorted(mine, key=str) != mine != list(named("memory_latency").points())
    assert set(mine) == set(named("memory_latency").points())


def test_methods_alternate_with_the_points():
    probe = replace(named("memory_latency"), archs=("sm90a",))
    machine = replace(MACHINE, arch=by_name("sm90a"))
    methods = [task.method for task in plan.Plan("a", (probe,), machine).tasks(0)]
    assert Counter(methods) == {"nvrtc": 69, "numba": 69}
    assert sum(one != other for one, other in pairwise(methods)) > 30


@pytest.mark.parametrize(("campaigns", "both"), [(1, {0}), (2, {0, 1}), (6, {0, 3})])
def test_a_second_method_is_measured_in_two_campaigns_and_in_those_for_what_is_in_doubt(campaigns, both):
    probe = replace(named("smem_latency"), archs=("sm90a",))
    whole = plan.Plan("a", (probe,), replace(MACHINE, arch=by_name("sm90a")), campaigns)
    methods = [{task.method for task in whole.tasks(campaign)} for campaign in range(campaigns + 1)]
    assert [number for number, found in enumerate(methods) if "numba" in found] == [*sorted(both), campaigns]
    assert all("nvrtc" in found for found in methods)


def test_a_metric_of_some_points_is_no_failure_at_the_others():
    probe = named("wgmma_throughput")
    given = {point: {metric.name for metric in probe.metrics_at(point)} for point in probe.points()}
    loaded = [point for point, names in given.items() if names == {"flops_per_clk_sm", "flops_per_s"}]
    assert (len(given), len(loaded)) == (84, 12)
    other = next(point for point in given if point not in loaded)
    machine = replace(MACHINE, arch=by_name("sm90a"), sm_count=132)
    sample = Sample("flops_per_clk_sm", 100.0, 99.0, 101.0, 5)
    (row,) = judged("r", Task(0, probe, "nvrtc", other), machine, Answer((sample,)))
    assert row.metric == "flops_per_clk_sm" and row.status == "ok"
    stray = Answer((sample, Sample("flops_per_s", 1e12, 1e12, 1e12, 5)))
    (row,) = judged("r", Task(0, probe, "nvrtc", other), machine, stray)
    assert row.status == "failed" and row.reason is not None and "gave flops_per_s" in row.reason


@pytest.mark.parametrize(
    ("sample", "said"),
    [
        (Sample("latency_cycles", 5.0, 6.0, 7.0, 3), "does not hold its value"),
        (Sample("colour", 5.0, 5.0, 5.0, 3), "gave colour, which it does not declare"),
        (Sample("latency_cycles", 5.0, float("-inf"), 7.0, 3), "not a number"),
        (None, "gave no latency_cycles"),
    ],
)
def test_an_answer_that_makes_no_sense_is_a_failed_row(tmp_path, sample, said):
    (probe,) = (p for p in discover(fake_probes.write(tmp_path, "steady")) if p.name == "steady")
    task = Task(0, probe, "host", Point((("size", 1),)))
    (row,) = judged("r", task, MACHINE, Answer(samples=(sample,) if sample else ()))
    assert row.status == "failed" and row.reason is not None and said in row.reason


def test_folders_are_cut_from_reasons_and_rates_are_not():
    assert sentence(RuntimeError("/a/b/k.cu(3): error")) == "RuntimeError: k.cu(3): error"
    assert sentence(DataError("124 B/clk/SM, and '/home/me/x.py'")) == "124 B/clk/SM, and 'x.py'"


def test_a_foreign_exception_names_the_innermost_line_of_the_probes_own_file():
    def inner() -> None:
        iter(None)  # type: ignore[call-overload]

    with pytest.raises(TypeError) as caught:
        inner()
    line = inner.__code__.co_firstlineno + 1
    assert sentence(caught.value, Path(__file__)).endswith(f"not iterable (test_run.py:{line})")
    assert sentence(caught.value, Path("elsewhere.py")).endswith("not iterable")


def test_a_run_of_which_nothing_is_supported_keeps_no_file(data, tmp_path):
    outcome = runner.run(options(tmp_path, "gpu_only"))
    assert (outcome.unsupported, outcome.statuses) == (True, {"unsupported": 1})
    assert not list(data.glob("runs/*/*.jsonl"))


# Interruption, on the command line as a person meets it -----------------------------------------------------------


def test_ctrl_c_keeps_what_was_measured_and_the_next_run_goes_on(data, tmp_path):
    fake_probes.write(tmp_path / "probes", "slow")
    arguments = ("--only", "slow", "--probes", str(tmp_path / "probes"), "--campaigns", "2", "--json")
    first = start(data, *arguments)
    file = wait_for_rows(data, 35)
    first.send_signal(signal.SIGINT)
    out, err = first.communicate(timeout=60)
    assert (first.returncode, out) == (130, "")
    assert f"kept in {file.name}" in err
    kept = record.read(file)
    assert not kept.finished and kept.problems == ()

    second = start(data, *arguments)
    out, err = second.communicate(timeout=60)
    assert second.returncode == 0, err
    assert f'"resumed_records": {len(kept.records)}' in out
    whole = record.read(file)
    assert whole.finished and whole.records[: len(kept.records)] == kept.records
    assert Counter(map(plan.key_of, whole.records)) == {
        (c, "slow", "host", (("size", s),)): 1 for c in (0, 1) for s in range(30)
    }
    assert list(data.glob("runs/*/*.jsonl")) == [file]


def unfinished(path: Path) -> Run:
    """The same run without its last line."""
    path.write_text("".join(path.read_text().splitlines(keepends=True)[:-1]))
    return record.read(path)


def test_only_the_same_measurement_is_gone_on_with(data, tmp_path):
    first = runner.run(options(tmp_path, "steady"))
    assert runner.unfinished(first.run.environment) is None, "it is finished"
    told = unfinished(first.run.path).environment
    assert runner.unfinished(told) is not None
    for change in ({"quick": True}, {"commit": "another"}, {"campaigns": 6}, {"sources_sha256": "another"}):
        assert runner.unfinished(told.model_copy(update=change)) is None, change


def test_what_failed_without_a_number_is_tried_again_and_a_refused_number_is_not(data, tmp_path):
    wanted = options(tmp_path, "recovers")
    first = runner.run(wanted)
    assert Counter(row.status for row in first.run.records) == {"ok": 1, "failed": 2}
    unfinished(first.run.path)
    (tmp_path / "fake" / "repaired").touch()
    second = runner.run(wanted)
    assert (second.kept, second.run.path) == (2, first.run.path)
    assert {row.point["size"]: (row.status, row.value) for row in second.run.records} == {
        1: ("ok", 5.0),
        2: ("ok", 5.0),
        3: ("failed", 1.0),
    }
    assert len(second.run.records) == 3


def test_probes_in_doubt_are_measured_again_in_campaigns_of_their_own(data, tmp_path):
    seen: list[int] = []

    def doubted(run: Run) -> tuple[Doubt, ...]:
        seen.append(len(run.records))
        return (Doubt("steady_cycles", "steady", "measured while the machine was busy"),) * (len(seen) <= 2)

    outcome = runner.run(options(tmp_path, "steady", "throttled", campaigns=2, retries=3, doubted=doubted))
    assert (outcome.retried, seen, outcome.run.finished) == (2, [8, 11, 14], True)
    again = [row for row in outcome.run.records if row.campaign >= 2]
    assert {(row.campaign, row.probe) for row in again} == {(2, "steady"), (3, "steady")}
    assert len(rows(outcome.run, "steady")) == 12, "what was measured first is kept"


def test_a_run_interrupted_while_it_measured_again_goes_on_there(data, tmp_path):
    def always(run: Run) -> tuple[Doubt, ...]:
        return (Doubt("steady_cycles", "steady", "measured while the machine was busy"),)

    wanted = options(tmp_path, "steady", retries=2, doubted=always)
    first = runner.run(wanted).run
    first.path.write_text("".join(first.path.read_text().splitlines(keepends=True)[:-3]))  # Finished, and two rows
    second = runner.run(wanted)
    assert (second.run.path, second.kept, second.retried) == (first.path, 7, 2)
    assert Counter(map(plan.key_of, second.run.records)) == Counter(map(plan.key_of, first.records))


def test_fresh_starts_anew(data, tmp_path):
    wanted = options(tmp_path, "steady")
    first = runner.run(wanted).run
    unfinished(first.path)
    outcome = runner.run(replace(wanted, fresh=True))
    assert (outcome.kept, outcome.run.path != first.path) == (0, True)


def test_a_full_disk_ends_the_run_and_leaves_whole_lines(data, tmp_path, monkeypatch):
    real, written = os.write, Counter[str]()

    def nearly_full(descriptor: int, text: bytes) -> int:
        if not text.startswith(b"{"):
            return real(descriptor, text)
        written["lines"] += 1
        return real(descriptor, text if written["lines"] < 3 else text[:10])

    monkeypatch.setattr(os, "write", nearly_full)
    with pytest.raises(DataError, match="No space left on device"):
        runner.run(options(tmp_path, "steady"))
    monkeypatch.undo()
    (file,) = data.glob("runs/*/*.jsonl")
    run = record.read(file)
    assert (len(run.records), run.problems, run.finished) == (1, (), False)


def test_two_runs_on_one_device_exclude_each_other(data, tmp_path, monkeypatch):
    monkeypatch.setenv("SMSCOPE_CACHE", str(tmp_path / "cache"))
    with lock.hold("host", wait=False, say=print):
        with pytest.raises(BusyError, match="Another run is measuring host"):
            runner.run(options(tmp_path, "steady", wait=False))
        other = start(data, "--only", "steady", "--probes", str(tmp_path))
        for line in other.stderr:
            if "this one waits" in line:
                break
        assert not list(data.glob("runs/*/*.jsonl"))
    _, err = other.communicate(timeout=60)
    assert other.returncode == 0, err
    assert len(list(data.glob("runs/*/*.jsonl"))) == 1


def test_the_supervisor_never_imports_a_gpu_library(data, tmp_path):
    fake_probes.write(tmp_path, "steady")
    after = DRIVER.replace("main(sys.argv[1:])", "") + (
        "try:\n    main(sys.argv[1:])\nexcept SystemExit as ended:\n    print(ended.code)\n"
        "print([name for name in ('cupy', 'torch', 'cuda.bindings.driver', 'numba.cuda') if name in sys.modules])\n"
    )
    arguments = ["run", "--device", "host", "--only", "steady", "--campaigns", "1", "--json", "--probes", str(tmp_path)]
    assert printed(after, str(data), *arguments, cwd=ROOT).splitlines()[1:] == ["0", "[]"]
