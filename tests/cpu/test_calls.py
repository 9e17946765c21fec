"""The hundred calls on a CPU: the same everywhere, timed in turns, kept, and judged by the rule that is promised."""

import json

import pytest
import torch

from attention import cli
from attention.compare.calls import grid, results, run, shapes
from attention.errors import AttentionError
from attention.problem import AttentionProblem
from attention.timed import timings
from microbench.machine.cpu import host_slug
from microbench.measure.turns import Rounds
from tests.cpu.commands import called

pytestmark = pytest.mark.usefixtures("data")


@pytest.fixture
def few(monkeypatch):
    """One tiny call of each kind, timed for an instant."""
    calls = [
        (kind, AttentionProblem(1, 2, 2, 1 if kind == "decode" else 9, 9, 16, causal=kind == "causal prefill"))
        for kind in shapes.KINDS
    ]
    monkeypatch.setattr(run, "drawn", lambda _seed: calls)
    monkeypatch.setattr(run, "ROUNDS", Rounds(fewest=5, most=5, burst_s=1e-4))


def row(ratio, **changes):
    fields = {"gpu": "host", "measured_utc": "now", "run": "now", "seed": 1, "kind": "tiny"}
    fields |= {"shape": (1, 1, 1, 1, 1, 16, 16), "dtype": "float32", "causal": False, "rounds": 5, "burst": 1}
    fields |= {"variant": "host/forward/torch_sdpa", "seconds": 1.0, "low": 1.0, "high": 1.0}
    fields |= {"torch_seconds": ratio, "torch_low": ratio, "torch_high": ratio, "largest_difference": 0.0}
    return results.CallTiming(**(fields | {"threads": 1, "load_average": 0.0} | changes))


def test_a_seed_draws_twenty_of_each_kind_and_the_same_every_time():
    calls = shapes.drawn()
    assert calls == shapes.drawn() != shapes.drawn(1)
    assert [kind for kind, _ in calls] == [kind for kind in shapes.KINDS for _ in range(20)]
    problems = {kind: [problem for each, problem in calls if each == kind] for kind in shapes.KINDS}
    assert all(problem.seq_q == 1 for problem in problems["decode"])
    assert all(max(problem.seq_q, problem.seq_kv) <= 64 for problem in problems["tiny"])
    assert {problem.dtype for problem in problems["half precision"]} == {"float16", "bfloat16"}
    assert all(problem.causal and problem.seq_q == problem.seq_kv for problem in problems["causal prefill"])
    assert any(problem.seq_q != problem.seq_kv for problem in problems["cross attention"])


def test_the_draw_is_the_one_that_was_committed():
    """Python promises the sequence of random(); nothing else may enter."""
    calls = [str(problem) for _, problem in shapes.drawn()]
    assert calls[::20] + calls[-1:] == [
        "B=2 Hq=8 Hkv=8 Sq=1 Skv=555 D=128 float32 full",
        "B=4 Hq=4 Hkv=4 Sq=39 Skv=30 D=16 float32 full",
        "B=1 Hq=8 Hkv=8 Sq=628 Skv=628 D=64 bfloat16 causal",
        "B=2 Hq=16 Hkv=4 Sq=113 Skv=113 D=128 float32 causal",
        "B=1 Hq=8 Hkv=8 Sq=985 Skv=610 D=80 float32 full",
        "B=1 Hq=16 Hkv=4 Sq=1118 Skv=83 D=64 float32 full",
    ]


def test_the_calls_are_timed_kept_and_read_back(few):
    rows = run.timed()
    kept, problems = results.read(results.path(host_slug()))
    assert kept == tuple(rows) and not problems
    assert [each.problem for each in kept] == [problem for _, problem in run.drawn(0)]
    assert all(each.low <= each.seconds <= each.high and each.rounds == 5 for each in kept)
    assert all(each.clock_mhz and {*each.flags} <= {"busy", "stolen", "clock-moved"} for each in kept)
    assert len({each.run for each in kept}) == 1 and not timings.read(host_slug())[0]


def test_a_wrong_result_is_named_and_not_kept(few, monkeypatch):
    from attention.frontends import sdpa as frontend

    monkeypatch.setattr(frontend, "sdpa", lambda q, k, v, **_: torch.zeros_like(q))
    with pytest.raises(AttentionError, match="differ by"):
        run.timed()
    assert not results.path(host_slug()).exists()


@pytest.mark.parametrize(
    ("ratios", "holds"),
    [([1.0] * 19 + [0.85], True), ([1.0] * 19 + [0.84], False), ([1.0] * 18 + [0.94] * 2, False), ([0.95] * 20, True)],
)
def test_the_promise_is_095_in_95_percent_and_085_in_all(ratios, holds):
    assert results.verdict(row(ratio) for ratio in ratios).holds == holds


def test_a_line_that_is_no_timing_is_named_and_the_rest_is_read(data):
    path = results.write([row(1.0)], "host")
    with path.open("a") as file:
        file.write(row(1.0).model_dump_json().replace('"seconds":1.0', '"seconds":0.0') + "\n{half\n")
    found, problems = results.read(path)
    assert len(found) == 1 and ["line 2" in problems[0], "line 3" in problems[1]] == [True, True]


def test_the_command_prints_each_kind_and_the_promise(few, capsys):
    code, text, _ = called(capsys, cli.main, "bench", "--calls")
    assert not code and "1 cross attention" in text and "5 all" in text and "The goal" in text
    assert json.loads(called(capsys, cli.main, "bench", "--calls", "--json")[1])["all"]["calls"] == 5


def test_the_grid_times_enough_to_know_an_error_in_each_precision():
    for dtype in ("float32", "float16", "bfloat16"):
        assert len({problem for problem in grid.problems(dtype)}) >= 6
    assert {problem.causal for problem in grid.problems(causal=True)} == {True}
    assert {problem.dtype for problem in grid.problems("float64")} == {"float64"}


def test_make_bench_ends_with_timings_where_it_can(monkeypatch, capsys):
    asked = []
    monkeypatch.setattr(cli.bench.benchmark, "bench", lambda problems, **_: asked.append(len(problems)) or [])
    monkeypatch.setattr(cli.bench, "visible_gpus", lambda: ["a GPU"])
    for where in ("any", "host"):
        told = called(capsys, cli.main, "bench", "--after-run", where)
    assert asked == [len(grid.problems())] and "Choices on this CPU use these timings" in told[2]
    monkeypatch.setattr(cli.bench, "find_spec", lambda _name: None)
    code, _, said = called(capsys, cli.main, "bench", "--after-run", "host")
    assert not code and len(asked) == 1 and "Torch is not installed" in said
