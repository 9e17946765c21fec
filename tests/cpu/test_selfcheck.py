"""attention.verify.selfcheck: what checks a machine's kernels without the tests."""

from typing import Any

import pytest
import torch

from attention import AttentionProblem
from attention.errors import EnvironmentLacks
from attention.frontends import sdpa as frontend
from attention.verify import selfcheck

SMALL = (
    AttentionProblem(1, 4, 2, 33, 65, 32),
    AttentionProblem(1, 2, 2, 20, 40, 16, causal=True, alignment="bottom_right"),
)


def test_the_public_function_and_each_kernel_of_ours_is_held_against_the_oracle() -> None:
    rows = selfcheck.check("cpu", SMALL)
    assert all(row.ok for row in rows)
    kernels = [(row.problem, row.kernel.partition(" ")[0]) for row in rows]
    tiled = "host/forward/tiled_online_softmax"
    assert kernels == [(str(SMALL[0]), selfcheck.PUBLIC), (str(SMALL[0]), tiled), (str(SMALL[1]), tiled)]


def test_a_wrong_result_and_a_crash_are_findings(monkeypatch: pytest.MonkeyPatch) -> None:
    def slightly_wrong(query: Any, key: Any, value: Any, **options: Any) -> Any:
        out = torch.nn.functional.scaled_dot_product_attention(query, key, value, **options).clone()
        out[0, -1, -1, -1] += 1e-4
        return out

    monkeypatch.setattr(frontend, "sdpa", slightly_wrong)
    public, kernel = selfcheck.check("cpu", SMALL[:1])
    assert (public.ok, kernel.ok) == (False, True)

    def crashes(*_: Any, **__: Any) -> Any:
        raise RuntimeError("an illegal address\nwas read")

    monkeypatch.setattr(frontend, "sdpa", crashes)
    public, kernel = selfcheck.check("cpu", SMALL[:1])
    assert (public.ok, public.failure, kernel.ok) == (False, "RuntimeError: an illegal address", True)


def test_a_result_that_is_not_a_number_is_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(frontend, "sdpa", lambda query, *_, **__: torch.full_like(query, torch.nan))
    assert not selfcheck.check("cpu", SMALL[:1])[0].ok


def test_without_a_gpu_it_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(EnvironmentLacks, match="no NVIDIA GPU"):
        selfcheck.check("cuda")


def test_what_is_checked_has_causal_shared_heads_and_decode_in_each_dtype() -> None:
    for device, dtypes in selfcheck.DTYPES.items():
        for dtype in dtypes:
            asked = [problem for problem in selfcheck.problems(device) if problem.dtype == dtype]
            assert {problem.device for problem in asked} == {device}
            assert any(problem.causal for problem in asked) and any(problem.seq_q == 1 for problem in asked)
            assert any(problem.heads_q > problem.heads_kv for problem in asked)
            assert {problem.head_dim for problem in asked} >= {64, 128, 256}
