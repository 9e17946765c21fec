"""`smscope tune` on a GPU that answers as a test scripts it: who is timed, in which order, budget, and what is kept."""

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from attention.ahead import recorded
from attention.ahead.recorded import RecordedCall
from attention.campaign import checked, plan, tune
from attention.campaign.posed import Posed, parse
from attention.campaign.recorded_classes import classes_of, posed_of
from attention.choose import learned, tunings, tunings_file
from attention.choose.classes import representative
from attention.choose.machine import MachineProfile
from attention.choose.tunings_file import Line, key_of
from attention.errors import UnsupportedError
from attention.kernels.torch.composed import slow
from attention.problem import AttentionProblem
from attention.variant import Config
from microbench.machine import nvml
from microbench.results import derive
from smscope import cli, tuning
from tests.cpu.campaign_rows import GPU, HOPPER
from tests.cpu.commands import called
from tests.cpu.scripted_campaign import H200, Scripted, machine_of_campaigns  # noqa: F401  a fixture
from tests.cpu.tuning_lines import CUDNN, EFFICIENT, FLASH, HERE, here_is

PROMPT = "prefill 4 16 16 4096 4096 128 bf16 causal"
TOKEN = "decode 8 32 8 1 4096 128 bf16"


@pytest.fixture(name="board")
def tuned_machine(gpu: Scripted, monkeypatch: pytest.MonkeyPatch) -> Iterator[Scripted]:
    """The machine of campaigns, its store empty."""
    derive.write(H200)
    monkeypatch.setattr(tuning, "machine_profile", lambda device: MachineProfile(H200))
    monkeypatch.setattr(tuning, "compile_together", _compiled(gpu))
    here_is(monkeypatch, HERE)
    gpu.peers_s = {FLASH: 3e-3, CUDNN: 2e-3}
    yield gpu
    tunings.forget()


def _compiled(gpu: Scripted) -> object:
    def compile_together(sources: list[object]) -> object:
        gpu.compiled += len(sources)
        return type("Done", (), {"refused": ("one: it is too large",)})()

    return compile_together


def tuned(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    return called(capsys, cli.main, "tune", *arguments)


def lines() -> list[Line]:
    return [Line.model_validate_json(raw.text) for each in tunings_file.read(GPU).values() for raw in each]


def pick(text: str) -> tuple[str, Config]:
    found = learned.choice_on(H200, representative(parse(text).problem)).pick
    return found.variant, found.config


def problem(**changes: object) -> AttentionProblem:
    sizes = {"batch": 4, "heads_q": 8, "heads_kv": 8, "seq_q": 512, "seq_kv": 512, "head_dim": 64, "dtype": "bf16"}
    return AttentionProblem(**(sizes | changes))  # type: ignore[arg-type]


def test_a_named_problem_is_timed_kept_and_picked(
    board: Scripted, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plan, "is_kept", lambda source: False)
    code, out, err = tuned(capsys, "--problem", PROMPT, "--json")
    told = json.loads(out)
    (line,) = lines()
    assert code == 0 and told["file"].endswith(f"tunings/{GPU}.jsonl") and "by the model's predictions" in err
    assert "Not compiled: one" in err and board.compiled == len(line.texts and line.candidates) - 3
    assert (line.key, line.problem, line.driver, line.torch) == (
        key_of(parse(PROMPT).problem),
        parse(PROMPT).problem,
        HERE.driver,
        HERE.torch,
    )
    ours = [each for each in line.candidates if not each.variant.startswith("peer/")]
    assert 3 <= len(ours) <= 5 and {each.variant for each in ours} == {*line.texts}
    assert {each.variant for each in line.candidates} - {*line.texts} == {FLASH, CUDNN, EFFICIENT}
    fastest = min((each for each in line.candidates if each.seconds), key=lambda each: each.seconds[0])
    assert pick(PROMPT) == (fastest.variant, Config(tuple(fastest.config.items())))
    (timed,) = told["timed"]
    assert timed["now"].startswith(HOPPER) and timed["now_seconds"] == fastest.seconds[0]
    assert timed["before"] == "sm90a/forward/torch_cudnn" and timed["before_seconds"] == 2e-3


def test_torchs_kernel_is_picked_where_it_was_faster(board: Scripted, capsys: pytest.CaptureFixture[str]) -> None:
    board.peers_s = {CUDNN: 1e-6}
    code, out, _ = tuned(capsys, "--problem", TOKEN)
    assert code == 0 and "sm90a/forward/torch_cudnn, 1.00 µs" in out
    assert pick(TOKEN)[0] == "sm90a/forward/torch_cudnn"


def test_a_recorded_program_is_timed_by_its_most_frequent_classes_first(
    board: Scripted, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    long, cached = problem(seq_q=2048, seq_kv=2048, causal=True), problem(seq_q=1, seq_kv=900)
    calls = {
        RecordedCall(problem()): 5,
        RecordedCall(long): 8,
        RecordedCall(replace(long, enable_gqa=False), gradients=True): 1,
        RecordedCall(replace(long, seq_q=2040, seq_kv=2040)): 2,
        RecordedCall(cached): 6,
        RecordedCall(replace(cached, seq_kv=901)): 7,
        RecordedCall(problem(dropout_p=0.1)): 100,
        RecordedCall(problem(dtype="float64")): 50,
    }
    recorded.append(tmp_path / "calls.jsonl", calls)
    code, out, _ = tuned(capsys, str(tmp_path / "calls.jsonl"), "--json")
    told = json.loads(out)
    asked = [(each.problem.seq_q, each.problem.seq_kv, each.calls) for each in lines()]
    assert code == 0 and asked == [(1, 901, 13), (2048, 2048, 11), (512, 512, 5)]
    assert board.timed == [str(each.problem) for each in lines()]
    assert [each.partition(": ")[2] for each in told["left_out"]] == [
        "dropout is torch's alone",
        "no kernel of ours serves it",
    ]


def test_what_the_budget_does_not_hold_is_named_and_left(
    board: Scripted, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    class Short:
        """A budget that holds one problem."""

        def fits(self, seconds: float) -> bool:
            return seconds < 2.2 and not board.timed

    monkeypatch.setattr(plan, "is_kept", lambda source: True)
    monkeypatch.setattr(tuning.budget, "started", lambda text: Short())
    code, out, _ = tuned(capsys, "--problem", PROMPT, "--problem", TOKEN)
    assert code == 0 and len(lines()) == 1 and f"The budget did not hold {parse(TOKEN)}." in " ".join(out.split())


def test_a_budget_that_holds_nothing_is_an_error(board: Scripted, capsys: pytest.CaptureFixture[str]) -> None:
    code, _, err = tuned(capsys, "--problem", PROMPT, "--budget", "1s")
    assert code == 2 and "holds no problem" in err and lines() == [] and board.compiled == 0


def test_three_minutes_are_the_usual_budget(
    board: Scripted, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    started = tuning.budget.started
    monkeypatch.setattr(tuning.budget, "started", lambda text: asked.append(text) or started(text))
    tuned(capsys, "--problem", TOKEN)
    assert asked == ["3m"]


def test_what_was_timed_before_ctrl_c_is_kept(board: Scripted, capsys: pytest.CaptureFixture[str]) -> None:
    board.dies_after = 1
    code, _, err = tuned(capsys, "--problem", PROMPT, "--problem", TOKEN)
    assert code != 0 and "Interrupted" in err and [each.problem for each in lines()] == [parse(PROMPT).problem]


def test_a_wrong_kernel_is_named_and_torchs_serves(board: Scripted, capsys: pytest.CaptureFixture[str]) -> None:
    board.failure = "wrong: error 3 above 1"
    code, out, _ = tuned(capsys, "--problem", PROMPT)
    assert code == 1 and "wrong: error 3 above 1" in out and pick(PROMPT)[0] == "sm90a/forward/torch_cudnn"


def test_a_plan_times_nothing(board: Scripted, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = tuned(capsys, "--problem", PROMPT, "--plan", "--json")
    (asked,) = json.loads(out)["problems"]
    assert code == 0 and {*asked["candidates"][-3:]} == {CUDNN, FLASH, EFFICIENT}
    assert board.timed == [] and lines() == []


def test_flash_attention_4_is_never_timed(board: Scripted, monkeypatch: pytest.MonkeyPatch) -> None:
    from attention.compare import candidates

    monkeypatch.setattr(candidates, "_installed", lambda name: True)
    found, left_out = tune.jobs(classes_of([parse(PROMPT), parse(TOKEN)], {}).classes, H200)
    assert left_out == () and all({peer.name for peer in each.job.peers} == {FLASH, CUDNN, EFFICIENT} for each in found)


def test_torchs_kernels_are_those_that_serve(board: Scripted) -> None:
    masked, capped = parse("features 2 8 8 512 512 64 bf16 mask"), parse("features 2 8 8 512 512 64 bf16 softcap=30")
    found, _ = tune.jobs(classes_of([masked, capped], {}).classes, H200)
    assert [[peer.name for peer in each.job.peers] for each in found] == [[EFFICIENT], []]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((), "nothing to time; give a file"),
        (("--problem", "prefill 4 16"), "is no problem; write Class, B, Hq"),
        (("--problem", f"{PROMPT} wobbly"), "'wobbly' says nothing of a problem"),
        (("--problem", PROMPT, "--budget", "soon"), "is no time"),
        (("--problem", "prefill 1 8 8 64 64 64 f64"), "nothing to time"),
        (("nowhere.jsonl",), "nowhere.jsonl cannot be read"),
    ],
)
def test_what_makes_no_sense_is_refused(
    board: Scripted, capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], said: str
) -> None:
    code, out, err = tuned(capsys, *arguments)
    assert (code, out) in ((2, ""), (1, "")) and said in err and lines() == []


def test_a_machine_without_a_gpu_says_so(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nvml, "visible_gpus", list)
    code, _, err = tuned(capsys, "--problem", PROMPT)
    assert code == 2 and "no NVIDIA GPU to time kernels on" in err


def test_a_driver_that_nobody_can_name_keys_nothing(
    board: Scripted, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    here_is(monkeypatch, None)
    code, _, err = tuned(capsys, "--problem", PROMPT)
    assert code == 1 and "which driver runs here" in err and board.timed == []


PACKED = {"varlen": True, "alignment": "bottom_right", "causal": True}


def test_packed_sequences_get_lengths_that_their_tokens_allow() -> None:
    found = posed_of(problem(**PACKED, tokens_q=1000, tokens_kv=1000))
    assert found.lengths == (512, 163, 163, 162) and found.kind == "packed" and found.problem.tokens_q == 1000
    assert posed_of(problem(**PACKED, batch=1, tokens_q=99, tokens_kv=99)).lengths == (99,)
    assert posed_of(problem(**PACKED, tokens_q=9999, tokens_kv=9999)).lengths == (512,) * 4


def test_a_cache_is_taken_to_be_full() -> None:
    found = posed_of(problem(seq_q=1, seq_kv=700, ranges=True))
    assert found.used == (700,) * 4 and found.kind == "decode"


@pytest.mark.parametrize(
    "changes",
    [
        {"dropout_p": 0.5},
        {"causal": True, "scale": -1.0},
        {"window": (8, -1), "seq_kv": 600},
        {**PACKED, "seq_kv": 600},
        {**PACKED, "ranges": True},
    ],
)
def test_what_cannot_be_posed_says_why(changes: dict[str, object]) -> None:
    with pytest.raises(UnsupportedError):
        posed_of(problem(**changes))


def test_a_named_class_goes_first_and_is_counted_once() -> None:
    named = parse("short 4 8 8 510 510 64 bf16")
    calls = {RecordedCall(problem(seq_q=64, seq_kv=64)): 9, RecordedCall(problem()): 2}
    found = classes_of([named, named], calls)
    assert [(each.posed.problem.seq_q, each.calls) for each in found.classes] == [(510, 2), (64, 9)]


@pytest.mark.parametrize(("rows", "keys"), [(40, 200), (200, 40), (200, 170), (100, 99), (70, 70)])
def test_causality_that_begins_top_left_is_checked_as_it_is(rows: int, keys: int) -> None:
    asked = problem(batch=2, heads_q=4, heads_kv=2, seq_q=rows, seq_kv=keys, causal=True).on("cuda")
    posed = Posed("prefill", asked)
    given = checked.inputs(posed, torch.device("cpu"))
    part = checked.part_of(posed, given)
    out, _ = slow.forward(given.query, given.key, given.value, asked, Config(), given.extras)
    assert part.judged(out).ok
    wrong, _ = slow.forward(given.query, given.key, given.value, replace(asked, causal=False), Config(), given.extras)
    assert part.judged(wrong).ok == (rows >= keys + checked.ROWS)
