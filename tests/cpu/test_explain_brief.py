"""`explain --brief`: the pick, its time and bound, and what comes second, and nothing else."""

import json
from pathlib import Path

import pytest

from attention import cli
from attention.choose.explain.brief import brief, seconds_of
from attention.choose.explain.explain import explain_named
from attention.choose.machine import MachineProfile, named_machine
from attention.problem import AttentionProblem
from microbench.console.si import counted
from tests.cpu.attention_profiles import host_profile, saved
from tests.cpu.commands import called
from tests.cpu.tuning_lines import CUDNN, HERE, POSED, SLOW_TILE, h200, here_is, line, stored, timed

SHAPE = ("explain", "--shape", "1,16,16,4096,4096,128", "--causal")
SHIPPED = "h100-sxm-80gb"
H200 = h200()
PROBLEM = AttentionProblem(1, 16, 16, 4096, 4096, 128, dtype="bfloat16", causal=True)


def test_brief_is_the_first_sentence_and_what_comes_second(capsys: pytest.CaptureFixture[str]) -> None:
    explained = explain_named(named_machine(SHIPPED), PROBLEM)
    code, out, _ = called(capsys, cli.main, *SHAPE, "--gpu", SHIPPED, "--brief")
    first, second, kernel, *_ = said = list(brief(explained))
    assert code == 0 and " ".join(out.split()) == " ".join(said) and len(out.splitlines()) < 9
    assert first == f"{explained.headline()}." and "predicted" in first and "bound by" in first
    behind = [each for each in explained.choice.candidates if each != explained.choice.pick]
    assert second.startswith(f"Second: {behind[0].variant} ({behind[0].config}), predicted ")
    assert kernel.startswith("Second kernel: ") and explained.choice.pick.variant not in kernel


def test_brief_says_how_many_cautions_it_leaves_out_but_names_the_gpu_that_stands_in() -> None:
    explained = explain_named(named_machine("h100-pcie"), PROBLEM)
    *_, stands_in, others = brief(explained)
    assert stands_in == f"{explained.cautions[0]}." and "h100-sxm-80gb stands for it" in stands_in
    assert others.startswith(counted(len(explained.cautions) - 1, "caution"))


def test_brief_for_a_program_has_the_same(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = called(capsys, cli.main, *SHAPE, "--gpu", SHIPPED, "--brief", "--json")
    told, choice = json.loads(out), explain_named(named_machine(SHIPPED), PROBLEM).choice
    assert choice.pick.prediction is not None
    assert code == 0 and told["pick"]["variant"] == choice.pick.variant
    assert told["pick"]["predicted_seconds"] == choice.pick.prediction.seconds
    assert told["second"]["predicted_seconds"] >= 0.98 * told["pick"]["predicted_seconds"]
    assert told["second_kernel"]["variant"] != choice.pick.variant


def test_of_a_gpu_that_nobody_measured_brief_says_that_nothing_is_predicted() -> None:
    said = list(brief(explain_named(named_machine("a100"), PROBLEM)))
    assert all("not predicted, because" in each for each in said[:2])


def test_where_one_kernel_alone_serves_nothing_is_second(data: Path) -> None:
    saved(data, host_profile())
    only = "host/forward/torch_sdpa"
    explained = explain_named(named_machine("host-test-4c"), AttentionProblem(1, 2, 2, 64, 64, 64), only=only)
    assert list(seconds_of(explained)) == [] and len(list(brief(explained))) == 1 + bool(explained.cautions)


def test_timings_of_tune_say_what_is_second(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    here_is(monkeypatch, HERE)
    stored(line(timed(CUDNN, 2e-3), timed("sm90a/forward/warp_specialised", 3e-3, config=SLOW_TILE)))
    explained = explain_named(MachineProfile(H200), POSED.problem)
    assert explained.choice.pick.variant == "sm90a/forward/torch_cudnn"
    (_, first), *_ = seconds_of(explained)
    assert first.config == SLOW_TILE and "timed 3.00 ms, predicted" in list(brief(explained))[1]
