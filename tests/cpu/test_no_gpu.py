"""Every command that needs a GPU ends alike where there is none: one sentence, and one exit code."""

from pathlib import Path

import pytest

from attention.errors import EnvironmentLacks, NoGpu
from microbench import errors
from microbench.machine import nvml
from smscope import cli
from tests.cpu.commands import called

PROMPT = "prefill 4 16 16 4096 4096 128 bf16 causal"
NEED_A_GPU = {
    "doctor": ("doctor",),
    "run on a GPU": ("run", "--device", "cuda:0"),
    "bench on a GPU": ("bench", "--device", "cuda:0"),
    "peers": ("bench-attention", "--peers"),
    "campaign": ("campaign",),
    "campaign --plan": ("campaign", "--plan"),
    "campaign --again": ("campaign", "--again"),
    "tune": ("tune", "--problem", PROMPT),
    "tune --plan": ("tune", "--problem", PROMPT, "--plan"),
    "prewarm": ("prewarm", "--shape", "1,8,8,1024,1024,64"),
    "verify": ("verify",),
    "verify one": ("verify", "--only", "ffma_latency"),
    "test-gpu": ("test-gpu",),
}


@pytest.mark.parametrize("name", NEED_A_GPU)
def test_without_a_gpu_every_command_says_so_and_ends_with_one_code(
    name: str, data: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(nvml, "visible_gpus", list)
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    code, out, err = called(capsys, cli.main, *NEED_A_GPU[name])
    assert (code, out, err.count("\n")) == (errors.NoGpu.exit_code, "", 1) and "GPU" in err
    assert not list(data.iterdir())


def test_the_error_of_attention_is_of_both_packages() -> None:
    assert issubclass(NoGpu, errors.NoGpu) and issubclass(NoGpu, EnvironmentLacks)
    assert NoGpu.exit_code == errors.NoGpu.exit_code == 2


def test_the_sentence_says_why_and_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nvml, "why_no_gpu", lambda: "the driver shows none")
    assert str(nvml.no_gpu("to look at")) == "There is no NVIDIA GPU to look at (the driver shows none)."
    assert str(nvml.no_gpu("here", "name one")) == "There is no NVIDIA GPU here (the driver shows none); name one."
