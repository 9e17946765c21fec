"""microbench.results.derive: which run counts, what a constant carries, and that a profile is the same to the byte."""

from pathlib import Path

import pytest

from microbench import files
from microbench.errors import DataError, UnknownGpu
from microbench.machine.arch import HOST
from microbench.probe import Axis, Bound, Constant, Metric, Probe
from microbench.results import derive, record
from microbench.results.curves import at, knee, peak
from microbench.results.profile import Profile
from microbench.results.record import Environment, Finished, Record, Run
from tests.cpu.test_record import ENVIRONMENT, row

RATE = Metric("rate_per_s", "1/s", Bound("the pipe", upper=100.0))


def probe_of(metric: Metric, *constants: Constant, **more: object) -> Probe:
    fields = {"asks": "?", "archs": HOST, "run": lambda *_: [], "name": "p", "family": "f"}
    return Probe(**fields | more, metrics=(metric,), constants=constants)


BOTH = (Constant("rate_per_s", "rate_per_s", peak("size")), Constant("first_per_s", "rate_per_s", at(size=1)))
PROBE = probe_of(RATE, *BOTH, axes=(Axis("size", (1, 2, 4)),))


L1_SIZE = Constant("l1_size_bytes", "latency_cycles", knee(0, "size"), unit="bytes")
LADDER = {1: 4.0, 2: 4.0, 4: 4.0, 8: 4.0, 16: 20.0, 32: 20.0, 64: 20.0, 128: 20.0}


def measured(campaign: int, size: int, value: float | None, **more: object) -> Record:
    return row(value, campaign=campaign, metric="rate_per_s", unit="1/s", point={"size": size}, **more)  # type: ignore[arg-type]


def a_run(*rows: Record, run_id: str = "r1", finished: bool = True, **told: object) -> Run:
    environment = Environment.model_validate({**ENVIRONMENT.model_dump(), "run_id": run_id, **told})
    return Run(path=Path(f"{run_id}.jsonl"), environment=environment, records=rows, finished=finished)


def sweep(factor: float = 1.0, campaigns: int = 6) -> list[Record]:
    return [
        measured(c, size, factor * value + c, bound_upper=100.0, bound="ok")
        for c in range(campaigns)
        for size, value in ((1, 10.0), (2, 20.0), (4, 20.0))
    ]


def test_a_constant_carries_its_interval_bound_and_runs():
    first = derive.reduce_runs([a_run(*sweep())], [PROBE]).profile["first_per_s"]
    assert (first.value, first.low, first.high, first.n) == (12.5, 10.0, 15.0, 6)
    assert (first.unit, first.runs, first.probe, first.method) == ("1/s", ("r1",), "p", "host")
    assert (first.bound_upper, first.bound_why, first.flags) == (100.0, "the pipe", ())


def test_the_newest_full_run_counts_and_a_quick_one_only_where_there_is_none():
    old, new = a_run(*sweep(1), run_id="a"), a_run(*sweep(2), run_id="b")
    quick = a_run(*sweep(3, 2), run_id="c", quick=True, campaigns=2)
    broken_off = a_run(*sweep(4, 2), run_id="d", finished=False)

    def chosen(*runs: Run) -> tuple[tuple[str, ...], tuple[str, ...]]:
        constant = derive.reduce_runs(runs, [PROBE]).profile["first_per_s"]
        return constant.runs, constant.flags

    assert chosen(old, new, quick, broken_off) == (("b",), ()) and chosen(quick, broken_off) == (("c",), ("quick",))
    assert chosen(broken_off) == (("d",), ("unfinished",))


def test_a_probe_that_only_a_partial_run_holds_is_taken_from_there_and_flagged():
    other = probe_of(RATE, Constant("q_per_s", "rate_per_s", at()), name="q")
    partial = a_run(row(7.0, probe="q", metric="rate_per_s"), run_id="z", only=("q",), campaigns=1)
    profile = derive.reduce_runs([a_run(*sweep()), partial], [PROBE, other]).profile
    assert profile["first_per_s"].runs == ("r1",) and profile["q_per_s"].runs == ("z",)
    assert profile["q_per_s"].flags == ("1 campaigns",)


def test_what_cannot_be_reduced_is_left_out_and_named():
    failed = [measured(0, size, None, status="failed", reason="no") for size in (1, 2, 4)]
    derived = derive.reduce_runs([a_run(*failed)], [PROBE])
    assert derived.profile.constants == ()
    assert derived.problems[1] == "first_per_s, from p: no point of its sweep was measured."


def test_a_failed_point_leaves_a_gap_that_is_told():
    rows = [r for r in sweep() if r.point["size"] != 2]
    rows += [measured(c, 2, 400.0, status="failed", reason="breaks its bound", bound="violated") for c in range(6)]
    constant = derive.reduce_runs([a_run(*rows)], [PROBE]).profile["rate_per_s"]
    assert constant.value == 22.5, "a value past its bound never becomes a constant"
    assert constant.flags == ("no two neighbours of its sweep agree", "1 points failed")


def test_a_second_method_gives_constants_of_its_own():
    probe = probe_of(RATE, Constant("rate_per_s", "rate_per_s", at()), archs=("sm90a",), twin=lambda *_: None)
    rows = [row(v, metric="rate_per_s", unit="1/s", method=m) for m, v in (("nvrtc", 1.0), ("numba", 1.01))]
    profile = derive.reduce_runs([a_run(*rows, arch="sm90a")], [probe]).profile
    assert {c.name: (c.value, c.method) for c in profile.constants} == {
        "rate_per_s": (1.0, "nvrtc"),
        "rate_per_s_numba": (1.01, "numba"),
    }


def test_a_size_has_its_own_unit_and_no_bound_of_the_latency():
    probe = probe_of(Metric("latency_cycles", "cycles", Bound("the pipe", lower=1.0)), L1_SIZE)
    rows = [row(v, metric="latency_cycles", point={"size": s}, bound_lower=1.0) for s, v in LADDER.items()]
    constant = derive.reduce_runs([a_run(*rows)], [probe]).profile["l1_size_bytes"]
    assert (constant.value, constant.unit, constant.bound_lower, constant.bound_why) == (8.0, "bytes", None, "unknown")


def test_a_profile_is_written_again_byte_for_byte(data):
    run = a_run(*sweep(campaigns=8), campaigns=8)
    file = data / "runs" / "test-gpu" / "r1.jsonl"
    files.append(file, run.environment, *run.records, Finished(run_id="r1", finished_utc="now"))
    path = derive.write(derive.derive("test-gpu", [PROBE]).profile)
    first = path.read_bytes()
    path.unlink()
    assert derive.write(derive.derive("test-gpu", [PROBE]).profile).read_bytes() == first
    assert Profile.load("test-gpu").value("first_per_s") == 13.5
    assert list(path.parent.iterdir()) == [path], "no part file stays behind"


def test_a_machine_without_runs_is_named(data):
    with pytest.raises(UnknownGpu, match=r"'b42'.*make bench"):
        derive.derive("b42", [PROBE])


def test_a_profile_that_cannot_be_written_leaves_the_old_one(data, monkeypatch):
    profile = derive.reduce_runs([a_run(*sweep())], [PROBE]).profile
    path = derive.write(profile)
    before = path.read_bytes()

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.replace", full)
    with pytest.raises(DataError, match="No space left"):
        derive.write(profile)
    assert path.read_bytes() == before and list(path.parent.iterdir()) == [path]


@pytest.mark.parametrize(
    ("disturbed", "value", "flags"),
    [(1, 10.0, ("few campaigns: 5",)), (4, 10.0, ("few campaigns: 2",)), (5, 5.0, ("busy",)), (6, 5.0, ("busy",))],
)
def test_disturbed_campaigns_are_set_aside_where_two_others_are_left(disturbed, value, flags):
    rows = [measured(c, 1, 5.0, flags=("busy",)) if c < disturbed else measured(c, 1, 10.0) for c in range(6)]
    constant = derive.reduce_runs([a_run(*rows)], [PROBE]).profile["first_per_s"]
    assert (constant.value, constant.flags) == (value, flags) and constant.n == (
        6 if "busy" in flags else 6 - disturbed
    )


def test_a_curve_is_reduced_over_whole_campaigns_and_a_few_disturbed_rows_are_counted():
    probe = probe_of(Metric("latency_cycles", "cycles"), L1_SIZE)

    def curve(campaign: int, *disturbed: int) -> list[Record]:
        return [
            row(v, campaign=campaign, metric="latency_cycles", point={"size": s}, flags=("stolen",) * (s in disturbed))
            for s, v in LADDER.items()
        ]

    rows = [*curve(0, *LADDER), *curve(1, 8), *curve(2)]
    constant = derive.reduce_runs([a_run(*rows)], [probe]).profile["l1_size_bytes"]
    assert (constant.value, constant.n, constant.flags) == (8.0, 2, ("stolen in 1 of 16 rows", "few campaigns: 2"))


def test_a_constant_in_doubt_is_taken_from_the_best_run_where_it_is_not():
    def run(name: str, value: float, *flags: str, **told: object) -> Run:
        return a_run(*(measured(c, 1, value, flags=flags) for c in range(6)), run_id=name, **told)

    def taken(*runs: Run) -> tuple[str, ...]:
        return derive.reduce_runs(runs, [PROBE]).profile["first_per_s"].runs

    quiet, newer, quick = run("a", 10.0), run("b", 9.0, "busy"), run("c", 11.0, quick=True)
    assert taken(quiet, newer, quick) == ("a",) and taken(newer, quick) == ("c",) and taken(newer) == ("b",)


def test_runs_before_a_probe_measured_something_else_stand_apart_from_later_ones():
    ids = ("20260101T0", "20260201T0", "20260301T0")
    runs = [a_run(*sweep(), run_id=run_id, sources_sha256="the same") for run_id in ids]

    def taken(since: str) -> tuple[str, ...]:
        found = probe_of(RATE, *BOTH, axes=PROBE.axes, since=since)
        return derive.reduce_runs(runs, [found]).profile["first_per_s"].runs

    assert taken("") == ids and taken("202602") == ids[1:]
    assert taken("202604") == ids, "older ones together, where there is no newer"


def test_a_boards_profile_reads_the_runs_of_that_board_alone(data, monkeypatch):
    for board in ("a" * 16, "b" * 16):
        told = ENVIRONMENT.model_copy(update={"gpu": "gpu", "uuid_sha256": board})
        files.append(data / "runs" / "gpu" / f"{board}.jsonl", told)
    read = []
    monkeypatch.setattr(record, "read", lambda file, *_: read.append(file.stem) or a_run(row(1.0)))
    record.read_all("gpu", board="a" * 8)
    assert read == ["a" * 16]


@pytest.mark.parametrize(("told", "changes"), [({"quick": True, "campaigns": 2}, False), ({}, True)])
def test_a_run_that_counts_less_than_those_behind_a_boards_profile_needs_no_new_one(data, monkeypatch, told, changes):
    monkeypatch.setattr(derive.paths, "writable_data", lambda: data)
    board = {"gpu": "gpu", "uuid_sha256": "a" * 16, "sources_sha256": "the same"}
    still = [measured(c, size, 20.0) for c in range(6) for size in (1, 2, 4)]
    full = a_run(*still, run_id="a", **board)
    derive.write(derive.reduce_runs([full], [PROBE], full.environment.board).profile)
    again = a_run(*sweep(2), run_id="b", **board | told)
    assert (derive.settled(again, [PROBE]) is None) is changes
    assert derive.settled(a_run(*sweep(), quick=True), [PROBE]) is None, "of no board"
    other = probe_of(RATE, Constant("another_per_s", "rate_per_s", at(size=1)), name="q")
    assert derive.settled(again, [PROBE, other]) is None, "a constant that the profile lacks"


def test_a_boards_profile_from_a_quick_run_is_derived_again_by_the_next(data, monkeypatch):
    monkeypatch.setattr(derive.paths, "writable_data", lambda: data)
    few = {"gpu": "gpu", "uuid_sha256": "a" * 16, "quick": True, "campaigns": 2}
    derive.write(derive.reduce_runs([a_run(*sweep(1, 2), **few)], [PROBE], "a" * 8).profile)
    assert derive.settled(a_run(*sweep(2, 2), run_id="b", **few), [PROBE]) is None
