"""`smscope tune --plan` on a machine without a GPU: what would be timed on one that is named."""

import json
from pathlib import Path

import pytest
import torch

from attention.ahead import recorded
from attention.ahead.recorded import RecordedCall
from attention.campaign import plan
from attention.problem import AttentionProblem
from microbench.machine import nvml
from smscope import cli
from tests.cpu.campaign_rows import GPU, HOPPER
from tests.cpu.commands import called
from tests.cpu.tuning_lines import CUDNN, EFFICIENT, FLASH

PROMPT = "prefill 4 16 16 4096 4096 128 bf16 causal"


def tuned(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    return called(capsys, cli.main, "tune", *arguments)


def test_a_plan_needs_no_gpu_where_one_is_named(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(nvml, "visible_gpus", list)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(plan, "is_kept", lambda source: False)
    asked = AttentionProblem(4, 8, 8, 512, 512, 64, dtype="bf16")
    recorded.append(tmp_path / "calls.jsonl", {RecordedCall(asked): 5})
    code, out, _ = tuned(capsys, str(tmp_path / "calls.jsonl"), "--problem", PROMPT, "--plan", "--gpu", GPU, "--json")
    told = json.loads(out)
    assert code == 0 and [each["calls"] for each in told["problems"]] == [0, 5]
    assert all({*each["candidates"][-3:]} == {CUDNN, FLASH, EFFICIENT} for each in told["problems"])
    assert told["kernels_to_compile"] > 0 and any(each.startswith(HOPPER) for each in told["problems"][0]["candidates"])


def test_a_plan_for_a_gpu_that_nobody_measured_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = tuned(capsys, "--problem", PROMPT, "--plan", "--gpu", "a100")
    assert code == 0 and " of ours, 3 of torch's" in out and "Caution: 'a100'" in err


def test_a_plan_without_a_gpu_or_a_name_says_how_to_name_one(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(nvml, "visible_gpus", list)
    code, out, err = tuned(capsys, "--problem", PROMPT, "--plan")
    assert (code, out) == (2, "") and "name one by --gpu, such as --gpu h100-sxm-80gb" in err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--gpu", GPU), "--gpu is of --plan"),
        (("--plan", "--gpu", "nowhere"), "nowhere"),
        (("--plan", "--gpu", "host-amd-epyc-f25m17-2c"), "is a CPU"),
    ],
)
def test_a_name_that_plans_nothing_is_refused(
    capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], said: str
) -> None:
    code, out, err = tuned(capsys, "--problem", PROMPT, *arguments)
    assert (code, out) == (2, "") and said in err
