"""A cell beside its peers in a process of its own, its answer scripted: what counts as wrong, and what does not."""

from typing import Any

import pytest

from attention.compare import apart, candidates
from attention.compare.apart import PeersResult
from attention.compare.run import Outcome
from microbench.errors import DeviceError, EnvironmentLacks
from microbench.verify import processes
from tests.cpu.timing_rows import made_up
from tests.cpu.verified_gpu import KERNEL, WHERE

(CELL, *_) = apart.chosen("sm90a")


def verified(monkeypatch: pytest.MonkeyPatch, answer: Any) -> PeersResult:
    monkeypatch.setattr(processes, "answers", lambda pieces, opens, lanes, limit_s: [(pieces[0][0], answer)])
    return apart.verify(CELL, 0, WHERE)


def outcome(name: str, seconds: float | None, reason: str | None = None) -> Outcome:
    made = None if seconds is None else made_up(seconds, name)
    return Outcome(CELL, f"{name} tile=1", made, reason)


def test_ours_beside_the_fastest_peer_and_why_another_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    found = (
        outcome(KERNEL, 1e-3),
        outcome("peer/torch_flash", 2e-3),
        outcome("peer/torch_cudnn", 3e-3),
        outcome("peer/flash_attn_4", None, "it does not compile"),
    )
    result = verified(monkeypatch, found)
    assert result.ok and len(result.timings) == 3
    assert result.told == f"{KERNEL} takes 1000 µs, peer/torch_flash 2000 µs: 2.00 times as fast"
    ((left_out),) = result.left_out
    assert left_out.what.startswith("peer/flash_attn_4") and left_out.reason == "it does not compile"
    assert PeersResult.model_validate_json(result.model_dump_json(exclude_none=True)) == result


def test_a_wrong_result_of_ours_is_a_failure_and_a_peer_s_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    result = verified(monkeypatch, (outcome(KERNEL, None, "wrong: 2 above 1"), outcome("peer/torch_flash", 2e-3)))
    assert [failure.reason for failure in result.failures] == ["wrong: 2 above 1"]
    assert result.told == "none of ours gave a right result"
    assert verified(monkeypatch, (outcome(KERNEL, 1e-3), outcome("peer/torch_flash", None, "wrong: 2"))).ok


def test_where_no_kernel_of_ours_serves_a_cell_nothing_was_refuted(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(EnvironmentLacks, match="No kernel of ours serves"):
        verified(monkeypatch, (outcome("peer/torch_flash", 2e-3),))


def test_a_process_that_ends_is_no_result(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(DeviceError, match=r"could not be timed on .*: its process ended with exit code 9\."):
        verified(monkeypatch, processes.Failed("its process ended with exit code 9"))


def test_a_worker_of_a_machine_without_a_gpu_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    with pytest.raises(EnvironmentLacks, match=r"^This torch sees no NVIDIA GPU; install a CUDA build of it\.$"):
        apart.verify(CELL, 0, WHERE)


@pytest.mark.parametrize(("arch", "dtype"), [("sm70", "float16"), ("sm75", "float16"), ("sm80", "bfloat16")])
def test_cells_are_of_every_head_dim_and_mask_in_a_dtype_that_the_gpu_has(arch: str, dtype: str) -> None:
    problems = [cell.problem for cell in apart.chosen(arch)]
    assert {problem.dtype for problem in problems} == {dtype}
    assert len({(problem.head_dim, problem.causal) for problem in problems}) == len(problems) == 6


def test_the_peers_that_are_not_installed_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(candidates, "_installed", lambda name: name != "flash-attn-4")
    assert candidates.missing() == ("FlashAttention-4",)
