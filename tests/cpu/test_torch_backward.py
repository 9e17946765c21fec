"""Which of torch's fused backward kernels serves a problem, judged without a GPU."""

from dataclasses import replace

import pytest
import torch

from attention.call import Extras
from attention.choose.candidates import withheld_from
from attention.choose.choose import Choice, choose
from attention.forwarded import Wanted
from attention.kernels.torch import cudnn
from attention.problem import AttentionProblem
from microbench.results.profile import Profile

SQUARE = AttentionProblem(2, 16, 4, 4096, 4096, 128, dtype="bfloat16", device="cuda", causal=True)
PLAIN = Wanted()
HOPPER, AMPERE, VOLTA = "sm90a", "sm80", "sm70"
CUDNN, FLASH, SLOW = "sm90a/backward/torch_cudnn", "sm80/backward/torch_flash", "sm70/backward/torch_math"


@pytest.fixture(autouse=True)
def _new_cudnn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cudnn, "_is_preferred", lambda: True)


def chosen(problem: AttentionProblem, arch: str, wanted: Wanted = PLAIN) -> Choice:
    """The choice on a GPU of which nothing was measured: what serves goes by rank."""
    profile = Profile(gpu="made-up", name="made up", arch=arch, sm_count=132)
    return choose(profile, problem, passes="backward", withheld=withheld_from(wanted, "backward", arch))


@pytest.mark.parametrize(
    ("problem", "arch", "variant"),
    [
        (SQUARE, HOPPER, CUDNN),
        (replace(SQUARE, causal=False, seq_q=100), HOPPER, CUDNN),
        (replace(SQUARE, sinks=True), HOPPER, CUDNN),
        (SQUARE, AMPERE, FLASH),
        (replace(SQUARE, seq_q=4160, seq_kv=4160), HOPPER, FLASH),  # 64 mod 128: cuDNN is known to give NaN
        (replace(SQUARE, seq_q=1, causal=False), HOPPER, FLASH),
        (replace(SQUARE, seq_q=100, alignment="bottom_right"), HOPPER, FLASH),
        (replace(SQUARE, window=(128, -1)), HOPPER, FLASH),
        (replace(SQUARE, varlen=True, alignment="bottom_right"), HOPPER, FLASH),
        (replace(SQUARE, head_dim=256, head_dim_v=256), AMPERE, FLASH),
        (replace(SQUARE, head_dim=256, head_dim_v=256), "sm120a", SLOW),
    ],
)
def test_cudnn_serves_what_it_serves_right_and_flash_the_rest(problem, arch, variant):
    assert chosen(problem, arch).pick.variant == variant


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"softcap": 30.0}, "softcap"),
        ({"alibi": True}, "ALiBi"),
        ({"mask": "bool"}, "bool mask"),
        ({"seq_q": 100}, "bottom-right"),
        ({"dtype": "float32"}, "float32"),
        ({"head_dim": 100, "head_dim_v": 100}, "multiple of 8"),
        ({"head_dim_v": 64}, "one head dim"),
        ({"scale": -0.1}, "positive"),
    ],
)
def test_what_neither_serves_is_named(changes, reason):
    found = chosen(replace(SQUARE, **changes), HOPPER)
    assert found.pick.variant == SLOW and reason in found.fallback


def test_a_fused_backward_is_no_fallback_and_says_which_call_one_would_serve():
    assert chosen(SQUARE, HOPPER).fallback is None
    assert chosen(replace(SQUARE, softcap=30.0), HOPPER).nearest == "without softcap"


def test_volta_has_no_fused_backward():
    found = chosen(SQUARE, VOLTA)
    assert found.pick.variant == SLOW and found.fallback == "there is no tuned kernel for sm70 yet"


@pytest.mark.parametrize(
    ("wanted", "reason"),
    [
        (Wanted(lse=True), "gradient of lse"),
        (Wanted(Extras(mask=True)), "gradient of mask"),
        (Wanted(twice=True), "second derivative"),
        (Wanted(nothing_seen=True), "a query and a key"),
    ],
)
@pytest.mark.parametrize("arch", [HOPPER, AMPERE, "host"])
def test_what_a_call_wants_may_be_the_slow_paths_alone(wanted, reason, arch):
    found = chosen(SQUARE.on("cpu" if arch == "host" else "cuda"), arch, wanted)
    assert found.pick.variant.endswith("torch_math") and reason in found.fallback


def test_deterministic_sums_are_flashs_where_torch_is_told_and_nobodys_else():
    assert "use_deterministic_algorithms" in chosen(SQUARE, HOPPER, Wanted(deterministic=True)).fallback
    torch.use_deterministic_algorithms(True)
    try:
        assert chosen(SQUARE, HOPPER, Wanted(deterministic=True)).pick.variant == FLASH
        assert chosen(SQUARE, HOPPER).pick.variant == FLASH
    finally:
        torch.use_deterministic_algorithms(False)


def test_cudnn_switched_off_is_flashs(monkeypatch):
    monkeypatch.setattr(torch.backends.cuda, "cudnn_sdp_enabled", lambda: False)
    found = chosen(SQUARE, HOPPER)
    assert found.pick.variant == FLASH
    assert any(each.variant == CUDNN and "switched off" in each.reason for each in found.refused)
