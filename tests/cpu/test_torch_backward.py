"""Which of torch's fused backward kernels serves a problem, judged without a GPU."""

from dataclasses import replace

import pytest
import torch

from attention import torch_backward
from attention.problem import AttentionProblem
from attention.torch_backward import cudnn, flash, route

SQUARE = AttentionProblem(2, 16, 4, 4096, 4096, 128, dtype="bfloat16", device="cuda", causal=True)
HOPPER, AMPERE = (9, 0), (8, 0)


@pytest.fixture(autouse=True)
def _new_cudnn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch_backward, "_torch_prefers_cudnn", lambda: True)


@pytest.mark.parametrize(
    ("problem", "capability", "run"),
    [
        (SQUARE, HOPPER, cudnn),
        (replace(SQUARE, causal=False, seq_q=100), HOPPER, cudnn),
        (replace(SQUARE, sinks=True), HOPPER, cudnn),
        (SQUARE, AMPERE, flash),
        (replace(SQUARE, seq_q=4160, seq_kv=4160), HOPPER, flash),  # 64 mod 128: cuDNN is known to give NaN
        (replace(SQUARE, seq_q=1, causal=False), HOPPER, flash),
        (replace(SQUARE, seq_q=100, alignment="bottom_right"), HOPPER, flash),
        (replace(SQUARE, window=(128, -1)), HOPPER, flash),
        (replace(SQUARE, varlen=True, alignment="bottom_right"), HOPPER, flash),
    ],
)
def test_cudnn_serves_what_it_serves_right_and_flash_the_rest(problem, capability, run):
    assert route(problem, capability).run is run


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
    found = route(replace(SQUARE, **changes), HOPPER)
    assert found.run is None and reason in found.reason


def test_volta_has_no_fused_backward():
    assert "compute capability 8.0, not 7.0" in route(SQUARE, (7, 0)).reason


def test_deterministic_sums_are_flashs_where_torch_is_told_and_nobodys_else():
    assert "use_deterministic_algorithms" in route(SQUARE, HOPPER, deterministic=True).reason
    torch.use_deterministic_algorithms(True)
    try:
        assert route(SQUARE, HOPPER, deterministic=True).run is flash
    finally:
        torch.use_deterministic_algorithms(False)
