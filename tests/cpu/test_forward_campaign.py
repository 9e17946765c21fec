"""The campaign goes on where a worker dies or hangs, and a worker judges what a variant wrote."""

import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from attention.call import Extras
from attention.kernels.common import layout
from attention.verify import inputs, oracle, rows, supervisor, worker
from attention.verify.campaign import Campaign
from attention.verify.rows import ForwardProblemRow
from microbench.errors import DeviceError
from tests.cpu.forward_cases import CASES, CPU, VARIANTS, Pair

# Answers as the campaign's workers do: it dies at problem 3, hangs at 5, and at 6 loses the GPU, but not the row.
FAKE = """
import sys, time
out, first, last = sys.argv[1], int(sys.argv[3]), int(sys.argv[5])
print("ready", flush=True)
for index in range(first, last):
    if index == 3:
        sys.exit("segmentation fault")
    if index == 5:
        time.sleep(60)
    with open(out, "a") as file:
        file.write(f"row {index}\\n")
    print(index, flush=True)
    if index == 6:
        sys.exit(3)
"""


def test_a_worker_that_dies_or_hangs_costs_one_row(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(supervisor, "HANG_SECONDS", 2.0)
    monkeypatch.setattr(supervisor, "CHUNK", 4)
    monkeypatch.setattr(rows, "cubin_of", lambda build: "")
    out = tmp_path / "rows.jsonl"
    supervisor.supervise(CASES[:10], out, [], [sys.executable, "-c", FAKE])
    lines = out.read_text().splitlines()
    assert [line for line in lines if line.startswith("row")] == [f"row {index}" for index in (0, 1, 2, 4, 6, 7, 8, 9)]
    died, hung = (ForwardProblemRow.model_validate_json(line) for line in lines if not line.startswith("row"))
    assert (died.index, died.ok) == (3, False) and "segmentation fault" in died.reason
    assert (hung.index, hung.ok) == (5, False) and "no result" in hung.reason


def test_a_worker_that_cannot_start_is_no_result(tmp_path: Path) -> None:
    with pytest.raises(DeviceError, match="no such GPU"):
        supervisor.supervise(CASES[:3], tmp_path / "rows", [], [sys.executable, "-c", "exit('no such GPU')"])


def test_a_torch_without_a_gpu_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By the worker that `smscope verify` starts, in a process of its own."""
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    campaign = Campaign(VARIANTS[:1], problems=1)
    with pytest.raises(DeviceError, match=r"No worker starts.*torch [\w.+]+ sees no GPU here"):
        supervisor.supervise(campaign.cases(), tmp_path / "rows", campaign.options)


def served(spoil: Callable[[Pair], None]) -> Callable[..., Pair]:
    """A variant's entry that gives low-precision results, then spoiled."""

    def forward(
        q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, problem: object, config: object, extras: Extras
    ) -> Pair:
        case = next(case for case in CASES if case.problem is problem)
        results = layout.empty_out(q, v.shape[-1]), layout.empty_lse(q)
        assert all(bool(torch.isnan(each).all()) for each in results)
        for piece in oracle.pieces(case, inputs.Tensors(q, k, v, extras), *results):
            piece.out.copy_(piece.low.out)
            piece.lse.copy_(piece.low.lse)
        spoil(results)
        return results

    return forward


def stray(results: Pair) -> None:
    out = results[0]
    torch.as_strided(out, (1,), (1,), out.storage_offset() + out.numel()).fill_(0.0)


def leave_unwritten(results: Pair) -> None:
    results[0][..., -1, :] = torch.nan


@pytest.mark.parametrize(
    ("spoil", "reason"),
    [(lambda _: None, ""), (stray, "wrote outside of out or lse"), (leave_unwritten, "out is not finite")],
)
def test_a_worker_calls_the_variant_and_judges_what_it_wrote(
    spoil: Callable[[Pair], None], reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker, "by_path", lambda path: SimpleNamespace(load=lambda: served(spoil)))
    monkeypatch.setattr(worker, "counters_left", lambda device: False)
    for case in [case for case in CASES if case.spare == (0, 0)][::12]:
        found = worker.examined(case, CPU, exact=spoil is not stray and case.index % 24 == 0)
        assert found.ok == (not reason) and reason in found.reason
        assert (found.error is None) == (reason == "out is not finite")
