"""The campaign of random attention problems judges rightly: right results pass, wrong ones fail. On the CPU."""

import math
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from attention import reference
from attention.layout import empty_lse, empty_out
from microbench.verification.forward import ALL, PLAIN, ForwardProblemRow, ForwardRow, read, text
from tests.gpu import forward_inputs, forward_oracle, forward_supervisor, forward_worker
from tests.gpu.forward_builds import BUCKETS, builds_of, tuned
from tests.gpu.forward_builds import PLAIN as PLAIN_BUILDS
from tests.gpu.forward_problems import Case, described, drawn
from tests.gpu.forward_summary import summed

CPU = torch.device("cpu")
VARIANTS = tuned()
CASES = drawn(VARIANTS, 60, seed=1, small=True)
Pair = tuple[torch.Tensor, torch.Tensor]


def identity(case: Case) -> str:
    return f"{case.index}"


def low(case: Case, tensors: forward_inputs.Tensors) -> Pair:
    """Out and lse as torch's low-precision operations have them: right by definition."""
    results = forward_inputs.Results(exact=False)
    out, lse = results.empty_out(tensors.query, case.problem.head_dim), results.empty_lse(tensors.query)
    for piece in forward_oracle.pieces(case, tensors, out, lse):
        piece.out.copy_(piece.low.out)
        piece.lse.copy_(piece.low.lse)
    assert not results.strayed()
    return out, lse


def test_a_sample_of_builds_has_every_configuration_feature_and_head_dim() -> None:
    for variant in VARIANTS:
        builds = builds_of(variant)
        assert len(builds) <= 300 // max(2, len(VARIANTS)) and len({build.defines for build in builds}) == len(builds)
        for bucket in BUCKETS:
            here = [build for build in builds if build.bucket == bucket]
            assert {build.asked for build in here} >= set(PLAIN_BUILDS)
            assert {build.dtype for build in here} == {"bfloat16", "float16"}


def test_a_campaign_is_the_same_wherever_it_is_drawn_and_compiled_to_the_sample() -> None:
    assert drawn(VARIANTS, 60, seed=1, small=True) == CASES
    assert drawn(VARIANTS, 60, seed=2, small=True) != CASES
    sample = {build.defines for variant in VARIANTS for build in builds_of(variant)}
    assert all(case.build.defines in sample for case in CASES)
    assert len({case.build for case in CASES}) == len(CASES)


@pytest.mark.parametrize("case", [case for case in CASES if not case.lengths][:12], ids=identity)
def test_the_oracle_on_a_device_is_that_of_the_reference(case: Case) -> None:
    """The reference knows neither ALiBi nor caps nor sinks: its mask is given the band."""
    problem = replace(case.problem, softcap=0.0, alibi=False, sinks=False)
    tensors = forward_inputs.tensors_of(replace(case, problem=problem, alibi=""), CPU)
    band = problem.band()
    found = forward_oracle.attention(
        tensors.query, tensors.key, tensors.value, problem, band, None, None, tensors.extras.mask, True
    )
    i, j = np.arange(problem.seq_q)[:, None], np.arange(problem.seq_kv)
    seen = (j >= i + (-math.inf if band.left is None else band.left)) & (
        j <= i + (math.inf if band.right is None else band.right)
    )
    if tensors.extras.mask is not None:
        seen = seen & tensors.extras.mask.numpy()
    arrays = (each.double().numpy() for each in (tensors.query, tensors.key, tensors.value))
    out, lse = reference.attention(*arrays, scale=problem.softmax_scale, mask=seen)
    np.testing.assert_allclose(found.out, out, rtol=0, atol=1e-12)
    np.testing.assert_allclose(found.lse, lse, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("case", CASES[::4], ids=identity)
def test_a_right_result_passes(case: Case) -> None:
    tensors = forward_inputs.tensors_of(case, CPU)
    verdict = forward_oracle.judge(case, tensors, *low(case, tensors))
    assert verdict.reason == "" and verdict.error <= verdict.allowed and verdict.block_ratio <= 0.5


def wrong_row(out: torch.Tensor, lse: torch.Tensor) -> None:
    out[0, -1, -1] *= 1.25


def unwritten(out: torch.Tensor, lse: torch.Tensor) -> None:
    out[0, 0, -1, -1] = torch.nan


def infinite(out: torch.Tensor, lse: torch.Tensor) -> None:
    out[0, 0, 0, 0] = torch.inf


def wrong_lse(out: torch.Tensor, lse: torch.Tensor) -> None:
    lse[0, 0, -1] += 2e-3


def unwritten_lse(out: torch.Tensor, lse: torch.Tensor) -> None:
    lse[0, 0, 0] = torch.nan


@pytest.mark.parametrize("spoil", [wrong_row, unwritten, infinite, wrong_lse, unwritten_lse])
def test_a_wrong_result_fails(spoil: Callable[[torch.Tensor, torch.Tensor], None]) -> None:
    """In a causal problem of many rows, whose last ones are small beside the first."""
    case = next(
        case for case in CASES if case.problem.causal and not case.problem.sinks and case.problem.mask == "none"
    )
    problem = replace(case.problem, batch=1, seq_q=300, seq_kv=300, scale=0.05, softcap=0.0, alibi=False, varlen=False)
    case = replace(case, problem=replace(problem, window=(-1, -1)), values="normal", lengths=(), spare=(0, 0), alibi="")
    tensors = forward_inputs.tensors_of(case, CPU)
    out, lse = low(case, tensors)
    assert forward_oracle.judge(case, tensors, out, lse).reason == ""
    spoil(out, lse)
    assert forward_oracle.judge(case, tensors, out, lse).reason != ""


@pytest.mark.parametrize("field", ["window", "softcap", "alibi", "sinks", "mask", "alignment"])
def test_a_kernel_that_overlooks_a_feature_fails(field: str) -> None:
    overlooked = 0
    for case in CASES:
        problem, plain = case.problem, {"softcap": 0.0, "alignment": "top_left"}.get(field)
        if field == "window" and problem.edges.left is not None:
            other = replace(problem, window=(-1, problem.edges.right or -1))
        elif plain is not None and getattr(problem, field) != plain:
            other = replace(problem, **{field: plain})
        else:
            tensors = forward_inputs.tensors_of(case, CPU)
            if (
                getattr(tensors.extras, {"sinks": "sinks", "alibi": "alibi", "mask": "mask"}.get(field, ""), None)
                is None
            ):
                continue
            without = replace(tensors, extras=replace(tensors.extras, **{field: None}))
            overlooked += bool(forward_oracle.judge(case, tensors, *low(case, without)).reason)
            continue
        tensors = forward_inputs.tensors_of(case, CPU)
        overlooked += bool(forward_oracle.judge(case, tensors, *low(replace(case, problem=other), tensors)).reason)
    assert overlooked >= 3


def test_tensors_lie_where_their_layout_says_amid_nan() -> None:
    values = torch.arange(2 * 3 * 5 * 8, dtype=torch.float16).view(2, 3, 5, 8)
    strides = {
        "bhsd": (120, 40, 8, 1),
        "bshd": (120, 8, 24, 1),
        "sliced": (5 * 7 * 16, 7 * 16, 16, 1),
        "sliced bshd": (7 * 5 * 16, 16, 5 * 16, 1),
        "misaligned": (120, 40, 8, 1),
        "strided": (240, 80, 16, 2),
        "transposed": (120, 40, 1, 5),
    }
    for where, wanted in strides.items():
        placed = forward_inputs._placed(values, where, exact=False)
        assert placed.stride() == wanted and torch.equal(placed, values)
        assert placed.data_ptr() % 16 == (2 if where == "misaligned" else 0)
        storage = torch.tensor([], dtype=torch.float16).set_(placed.untyped_storage())
        assert int((~torch.isnan(storage)).sum()) == values.numel()
    assert forward_inputs._placed(values, "expanded", exact=False).stride(0) == 0
    assert forward_inputs._placed(values[:1], "expanded", exact=False).stride(1) == 0


def test_a_write_outside_of_the_results_is_seen() -> None:
    results = forward_inputs.Results(exact=False)
    out = results.empty_out(torch.zeros(1, 2, 3, 8, dtype=torch.float16).transpose(1, 2), 8)
    assert out.stride() == empty_out(torch.zeros(1, 2, 3, 8).transpose(1, 2), 8).stride()
    assert bool(torch.isnan(out).all()) and not results.strayed()
    out.fill_(1.0)
    lse = results.empty_lse(out)
    assert lse.shape == empty_lse(out).shape and not results.strayed()
    torch.as_strided(out, (1,), (1,), out.storage_offset() + out.numel()).fill_(0.0)
    assert results.strayed()


def row(case: Case, ok: bool) -> ForwardProblemRow:
    reason, cubin = "" if ok else "wrong", case.build.dtype
    return ForwardProblemRow(
        cubin=cubin,
        index=case.index,
        seed=0,
        head_dims="1-64",
        ok=ok,
        reason=reason,
        error=1.0,
        allowed=4.0,
        block_ratio=0.5 if ok else 2.0,
        lse_ratio=0.25,
        **described(case),
    )


def test_a_campaign_is_summed_up_by_head_dim_and_feature(tmp_path: Path) -> None:
    rows = [row(case, ok=case.index != 3) for case in CASES[:8]]
    file = tmp_path / "rows.jsonl"
    file.write_text(text(rows))
    assert list(read(file, ForwardProblemRow)) == rows
    summary = summed(read(file, ForwardProblemRow), "some-gpu", "1", "2")
    for feature in {feature for each in rows for feature in each.features}:
        (found,) = [each for each in summary if each.feature == feature]
        assert found.problems == sum(feature in each.features for each in rows)
        assert found.failed == sum(feature in each.features and not each.ok for each in rows)
        assert (found.worst_ratio, found.worst_lse_ratio) == (0.25, 0.25)
    assert sum(each.problems for each in summary if each.feature == PLAIN) == sum(not each.features for each in rows)
    assert [each.problems for each in summary if each.feature == ALL] == [len(rows)]
    file.write_text(text(summary))
    assert read(file, ForwardRow) == summary


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
    monkeypatch.setattr(forward_supervisor, "HANG_SECONDS", 2.0)
    monkeypatch.setattr(forward_supervisor, "CHUNK", 4)
    monkeypatch.setattr(forward_worker, "_cubin", lambda build: "")
    out = tmp_path / "rows.jsonl"
    forward_supervisor.supervise(CASES[:10], out, [], [sys.executable, "-c", FAKE])
    lines = out.read_text().splitlines()
    assert [line for line in lines if line.startswith("row")] == [f"row {index}" for index in (0, 1, 2, 4, 6, 7, 8, 9)]
    died, hung = (ForwardProblemRow.model_validate_json(line) for line in lines if not line.startswith("row"))
    assert (died.index, died.ok) == (3, False) and "segmentation fault" in died.reason
    assert (hung.index, hung.ok) == (5, False) and "no result" in hung.reason


def test_a_worker_that_cannot_start_is_no_result(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match="no such GPU"):
        forward_supervisor.supervise(CASES[:3], tmp_path / "rows", [], [sys.executable, "-c", "exit('no such GPU')"])
