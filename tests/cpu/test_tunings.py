"""What `smscope tune` stored decides calls of its class, while driver, torch and text are what they were."""

import warnings
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from attention.campaign.posed import parse
from attention.choose import learned, tunings, tunings_file
from attention.choose.choose import UNPROVEN, Choice
from attention.choose.classes import representative
from attention.choose.explain import explain
from attention.choose.explain.explanation import Explanation
from attention.choose.machine import MachineProfile
from attention.choose.tunings_file import key_of
from attention.choose.while_new import while_new
from attention.op import plan
from attention.problem import AttentionProblem
from attention.variant import Config
from microbench import faults
from microbench.errors import DataWarning
from microbench.results import derive
from microbench.results.profile import Profile
from tests.cpu.attention_profiles import forget_choices
from tests.cpu.campaign_rows import GPU, HOPPER
from tests.cpu.tuning_lines import (
    CUDNN,
    EFFICIENT,
    FLASH,
    HERE,
    POSED,
    SLOW_TILE,
    here_is,
    line,
    stored,
    timed,
)

H200 = Profile.load(GPU)
OURS = timed(HOPPER, 1e-3, 2e-3, 3e-3, config=SLOW_TILE)
VOLTA, V100 = "sm70/forward/quad_pair", Profile(gpu="v100-test", name="V100", arch="sm70", sm_count=80)


@pytest.fixture(autouse=True)
def _machine(data: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    derive.write(H200)
    here_is(monkeypatch, HERE)
    faults.forget()
    yield
    tunings.forget()
    forget_choices()


def pick(problem: AttentionProblem = POSED.problem, **asked: str) -> tuple[str, Config]:
    found = learned.choice_on(H200, representative(problem), **asked).pick  # type: ignore[arg-type]
    return found.variant, found.config


def test_a_line_is_read_as_it_was_written(data: Path) -> None:
    written = line(OURS, timed(CUDNN, failure="it has none"), calls=7, flags=("throttled:power-cap",))
    assert tunings_file.append(written) == data / "tunings" / f"{GPU}.jsonl"
    ((raw,),) = tunings_file.read(GPU).values()
    assert tunings_file.Line.model_validate_json(raw.text) == written and raw.text.startswith(tunings_file.BEGIN)


def test_the_fastest_that_was_timed_is_picked_whatever_is_predicted() -> None:
    before = pick()
    stored(line(OURS, timed(CUDNN, 9e-3)))
    assert pick() == (HOPPER, SLOW_TILE) != before
    stored(line(OURS, timed(CUDNN, 1e-3)))
    assert pick() == ("sm90a/forward/torch_cudnn", Config())
    assert pick(only="smscope") == (HOPPER, SLOW_TILE)


def test_all_problems_of_the_class_are_decided_and_no_other() -> None:
    stored(line(OURS))
    alike = replace(POSED.problem, seq_q=4090, seq_kv=4090, scale=0.3, enable_gqa=False)
    assert pick(alike) == (HOPPER, SLOW_TILE)
    for other in ({"causal": False}, {"head_dim": 64, "head_dim_v": 64, "scale": None}, {"dtype": "float16"}):
        assert learned.choice_on(H200, representative(replace(POSED.problem, **other))).tuning is None


def test_a_call_gets_to_no_kernel_that_torch_would_not_take_itself() -> None:
    stored(line(OURS, timed(EFFICIENT, 5e-4), timed(CUDNN, 5e-3)))
    assert pick() == (HOPPER, SLOW_TILE)
    stored(line(OURS, timed(FLASH, 5e-4), timed(CUDNN, 5e-3)))
    assert pick() == ("sm80/forward/torch_flash", Config())
    stored(line(OURS, timed(EFFICIENT, 5e-4), timed(CUDNN, failure="refused"), timed(FLASH, failure="refused")))
    assert pick() == ("sm70/forward/torch_efficient", Config())


def test_what_was_wrong_is_not_picked_however_fast() -> None:
    wrong = timed(HOPPER, 1e-6, config=SLOW_TILE, failure="wrong: error 3 above 1")
    stored(line(wrong, timed(CUDNN, 1.0)))
    assert pick() == ("sm90a/forward/torch_cudnn", Config())


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"driver": "570.1"}, "of driver 570.1, and here is 580.95.05"),
        ({"torch": "2.9.0"}, r"of torch 2.9.0, and here is 2.11.0\+cu128"),
        ({"texts": {HOPPER: "0" * 16}}, f"of another text of {HOPPER}"),
        ({"texts": {"sm90a/forward/gone": "0" * 16}}, "of another text of sm90a/forward/gone"),
        ({"flags": ("busy",)}, r"disturbed \(busy\)"),
    ],
)
def test_a_line_of_something_else_is_ignored_with_one_word(changes: dict[str, object], said: str) -> None:
    before = pick()
    stored(line(OURS, **changes))
    with pytest.warns(DataWarning, match=rf"tunings/{GPU}\.jsonl: the timings of B=4 .* are {said}") as told:
        assert pick() == before == pick()
    assert len(told) == 1 and "make tune" in str(told[0].message)


def test_a_newer_line_stands_for_the_older_and_a_stale_one_for_nothing() -> None:
    stored(line(timed(CUDNN, 1.0), OURS), line(timed(CUDNN, 1e-6), OURS, driver="570.1"))
    assert pick() == (HOPPER, SLOW_TILE)


BROKEN = (
    "{",
    '{"gpu": 3}',
    '{"key":"KEY","gpu":3}',
    '{"key":"KEY","schema_ver',
    '{"key":"KEY", "schema_version": 9}',
    "\x00\xff",
)


@pytest.mark.parametrize("text", BROKEN)
def test_a_broken_line_is_named_and_breaks_no_call(data: Path, text: str) -> None:
    stored(line(OURS))
    with (data / "tunings" / f"{GPU}.jsonl").open("a") as file:
        file.write(text.replace("KEY", key_of(POSED.problem)) + "\n")
    tunings.forget()
    with pytest.warns(DataWarning, match=r"line 2: .*This is left out, the rest counts"):
        assert pick() == (HOPPER, SLOW_TILE)


def test_a_problem_that_is_none_is_a_broken_line(data: Path) -> None:
    stored(line(OURS))
    file = data / "tunings" / f"{GPU}.jsonl"
    file.write_text(file.read_text().replace('"heads_q":16', '"heads_q":17'))
    tunings.forget()
    with pytest.warns(DataWarning, match="line 1: "):
        assert pick() != (HOPPER, SLOW_TILE)


def test_another_machine_is_decided_by_predictions(monkeypatch: pytest.MonkeyPatch) -> None:
    before = pick()
    stored(line(OURS))
    here_is(monkeypatch, None)
    assert pick() == before


def test_nothing_is_asked_of_a_machine_without_tunings(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(profile: Profile) -> None:
        raise AssertionError("torch would be imported, and the driver asked")

    monkeypatch.setattr(tunings.here, "here_of", fails)
    assert pick()[0] == "sm90a/forward/torch_cudnn"


def test_the_file_is_read_once_and_a_line_when_it_is_met(monkeypatch: pytest.MonkeyPatch) -> None:
    reads: list[str] = []
    read, parsed = tunings_file.read, tunings._line
    monkeypatch.setattr(tunings_file, "read", lambda gpu: reads.append(gpu) or read(gpu))
    monkeypatch.setattr(tunings, "_line", lambda raw: reads.append("line") or parsed(raw))
    stored(line(OURS), *(line(OURS, posed=parse(f"prefill {n} 8 8 512 512 64 bf16")) for n in (1, 2, 3, 4)))
    for _ in range(3):
        pick()
    assert reads == [GPU, "line", "line", "line"]


def test_sdpa_runs_what_was_timed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plan, "machine_profile", lambda device: MachineProfile(H200))

    def served() -> tuple[str, Config, bool]:
        forget_choices()
        found = plan._pick(POSED.problem, "cuda:0", "")
        return found.owner, found.config, found.fallback is None

    assert served() == ("torch", Config(), False)  # no timing of ours is on file
    stored(line(OURS, timed(FLASH, 2e-2), timed(CUDNN, 1e-2)))
    assert served() == ("smscope", SLOW_TILE, True)
    stored(line(OURS, timed(FLASH, 1e-4), timed(CUDNN, 2e-4)))
    assert served() == ("torch", Config(), True)


def test_while_a_shape_is_new_timings_say_who_serves_it_without_a_plan() -> None:
    stored(line(OURS, timed(CUDNN, 1.9e-3), timed(FLASH, 1.95e-3)))
    choice = learned.choice_on(H200, representative(POSED.problem))
    assert choice.pick.variant == "sm90a/forward/torch_cudnn"
    assert while_new(choice).variant == "sm80/forward/torch_flash"
    stored(line(OURS, timed(CUDNN, 1e-5), timed(FLASH, 9e-3)))
    choice = learned.choice_on(H200, representative(POSED.problem))
    assert while_new(choice) == choice.pick  # nobody takes less, the plan included


def test_a_kernel_that_no_gpu_had_run_serves_once_it_was_tuned() -> None:
    posed = parse("prefill 1 8 8 1024 1024 64 f16")
    problem = representative(posed.problem)
    before = learned.choice_on(V100, problem)
    assert before.pick.owner == "torch" and any(each.reason == UNPROVEN for each in before.refused)
    ours = learned.choice_on(V100, problem, only="smscope").pick
    texts = {VOLTA: tunings.learned_key.texts()[VOLTA][:16]}
    mine = timed(VOLTA, 1e-3, config=ours.config)
    stored(line(mine, timed(EFFICIENT, 2e-3), posed=posed, texts=texts, gpu=HERE.gpu))
    after = learned.choice_on(V100, problem)
    assert (after.pick.variant, after.pick.config, after.fallback) == (VOLTA, ours.config, None)
    stored(line(mine, timed(EFFICIENT, 2e-4), posed=posed, texts=texts))
    assert learned.choice_on(V100, problem).pick.owner == "torch"
    other = representative(replace(posed.problem, head_dim=128, head_dim_v=128, scale=None))
    assert any(each.reason == UNPROVEN for each in learned.choice_on(V100, other).refused)


def test_an_explanation_says_what_was_timed_and_survives_json() -> None:
    stored(line(OURS, timed(CUDNN, 9e-3)))
    found = explain.explain_on(H200, POSED.problem)
    text = " ".join(str(found).split())
    assert "timed 2.00 ms, predicted" in text and "Timed by `make tune`" in text and "timings decided" in text
    assert (
        f"under driver {HERE.driver} and torch {HERE.torch}: {HOPPER}" in text and "peer/torch_cudnn took 9.00" in text
    )
    assert found.untimed == "" and Explanation.from_json(found.to_json()) == found
    assert Choice.from_json(found.choice.to_json()) == found.choice


def test_an_explanation_says_what_a_tune_would_decide() -> None:
    found = explain.explain_on(H200, POSED.problem)
    assert "no timing of this class" in found.untimed and "`make tune`" in found.untimed
    assert f", {HOPPER} (tile_keys=" in found.untimed and "overlap, and time" in found.untimed
    assert "torch_efficient" in found.untimed and "Tune: no timing" in str(found)  # nothing predicts that one
    assert explain.explain_on(H200, POSED.problem, passes="backward").untimed == ""
    assert explain.explain_on(H200, replace(POSED.problem, dtype="float64")).untimed == ""


def test_on_a_gpu_that_nobody_measured_published_constants_say_what_is_open() -> None:
    found = explain.explain(POSED.problem, gpu="b200")
    assert found.choice.pick.variant == "sm100a/forward/torch_cudnn"
    assert "sm100a/forward/torch_cudnn, sm100a/forward/tensor_memory (" in found.untimed
    assert "overlap" in found.untimed


def test_a_machine_without_tunings_is_looked_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert tunings.tuning_of(H200, POSED.problem) is None
        monkeypatch.setattr(tunings_file, "any_there", lambda: pytest.fail("asked twice"))
        assert tunings.tuning_of(H200, POSED.problem) is None
