"""The campaign of random attention problems judges rightly: right results pass, wrong ones fail. On the CPU."""

import math
from collections.abc import Callable
from dataclasses import replace
from itertools import product

import numpy as np
import pytest
import torch

from attention.call import TENSORS
from attention.kernels.common.layout import empty_lse, empty_out
from attention.oracle import reference
from attention.problem import AttentionProblem
from attention.variant import by_path
from attention.verify import __main__ as program
from attention.verify import inputs, oracle
from attention.verify.builds import (
    BUCKETS,
    DTYPES,
    PLAIN,
    Build,
    as_source,
    builds_of,
    legal,
    problem_of,
    told_apart,
    tuned,
)
from attention.verify.campaign import Campaign
from attention.verify.problems import Case, drawn
from tests.cpu.forward_cases import CASES, CPU, VARIANTS, low


def identity(case: Case) -> str:
    return f"{case.index}"


@pytest.mark.parametrize("path", VARIANTS)
@pytest.mark.parametrize("bucket", BUCKETS, ids=str)
def test_a_sample_of_builds_has_all_that_a_head_dim_is_served_with(path: str, bucket: tuple[int, int]) -> None:
    variant, sample = by_path(path), builds_of(path)
    assert sum(len(builds_of(each)) for each in VARIANTS) <= 760
    assert len({build.defines for build in sample}) == len(sample)
    here = [build for build in sample if build.bucket == bucket and not build.value_dim]
    assert all(legal(variant, build) for build in here)
    configs = told_apart(variant, problem_of(bucket[1], DTYPES[1], frozenset()), BUCKETS.index(bucket))
    every = [Build(path, bucket, *pair, frozenset()) for pair in product(DTYPES, configs)]
    able = [each for each in every if any(legal(variant, replace(each, asked=asked)) for asked in PLAIN)]
    assert {(each.dtype, each.config) for each in here} == {(each.dtype, each.config) for each in able}
    served = {asked for asked in PLAIN for each in every if legal(variant, replace(each, asked=asked))}
    assert frozenset() in served and {build.asked for build in here} >= served


@pytest.mark.parametrize("path", ["sm70/forward/quad_pair", "sm75/forward/register_staged", *VARIANTS])
def test_a_sample_has_every_head_dim_that_is_held_and_every_number_of_blocks_that_share_keys(path: str) -> None:
    variant, sample = by_path(path), builds_of(path)
    assert {build.problem.head_dim for build in sample} == set(range(16, 257, 16))
    numbers = set(dict(variant.space).get("key_splits", (1,)))
    assert {dict(build.config.values).get("key_splits", 1) for build in sample} == numbers
    assert len({build.defines for build in sample}) == len(sample)
    held = {variant.pads(case.problem.head_dim) for case in drawn((path,), 2 * len(sample), seed=3)}
    assert held == set(range(16, 257, 16))


def test_a_sample_has_few_rows_where_warps_share_them_and_where_eight_warps_have_some() -> None:
    few = [build for build in builds_of("sm80/forward/split_keys") if build.few]
    assert {dict(build.defines)["KEY_WARPS"] for build in few} == {1, 2, 4}
    assert {build.config["warps"] for build in few} == {4, 8}


def test_a_campaign_is_the_same_wherever_it_is_drawn_and_compiled_to_the_sample() -> None:
    assert drawn(VARIANTS, 80, seed=1, small=True) == CASES
    assert drawn(VARIANTS, 80, seed=2, small=True) != CASES
    sample = {build.defines for variant in VARIANTS for build in builds_of(variant)}
    assert all(case.build.defines in sample for case in CASES)
    assert len({case.build for case in CASES}) == len(CASES)


@pytest.mark.parametrize("arch", ["sm80", "sm86", "sm120a"])
def test_another_gpu_gets_problems_that_its_kernels_serve(arch: str) -> None:
    """Its worker draws the same from the words that it is started with."""
    for variant in (*tuned(arch), *as_source(arch)):
        campaign = Campaign((variant,), problems=30, arch=arch, device=1)
        few = replace(campaign, checked=True)
        for case in (*campaign.cases(), *few.cases()):
            assert {source.arch.name for source in case.build.sources} == {arch}
            assert case.build in builds_of(variant, arch)
            assert legal(by_path(variant), case.build)
        given = program.parser().parse_args(["rows.jsonl", *campaign.options])
        assert program.campaign_of(given) == campaign and program.cases_of(given) == campaign.cases()


@pytest.mark.parametrize("case", [case for case in CASES if not case.lengths][:12], ids=identity)
def test_the_oracle_on_a_device_is_that_of_the_reference(case: Case) -> None:
    """Both score by the features' own oracles: here the reference's mask is given the band."""
    problem = replace(case.problem, softcap=0.0, alibi=False, sinks=False, ranges=False)
    tensors = inputs.tensors_of(replace(case, problem=problem), CPU)
    band = problem.band()
    operands = dict.fromkeys(TENSORS) | {"mask": tensors.extras.mask}
    found = oracle.attention(tensors.query, tensors.key, tensors.value, problem, operands, True)
    i, j = np.arange(problem.seq_q)[:, None], np.arange(problem.seq_kv)
    seen = (j >= i + (-math.inf if band.left is None else band.left)) & (
        j <= i + (math.inf if band.right is None else band.right)
    )
    given = tensors.extras.mask
    if given is not None and given.is_floating_point():  # added to the scores
        seen = np.where(seen, given.double().numpy(), -math.inf)
    elif given is not None:
        seen = seen & given.numpy()
    arrays = (each.double().numpy() for each in (tensors.query, tensors.key, tensors.value))
    out, lse = reference.attention(*arrays, scale=problem.softmax_scale, mask=seen)
    np.testing.assert_allclose(found.out, out, rtol=0, atol=1e-12)
    np.testing.assert_allclose(found.lse, lse, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("case", CASES[::4], ids=identity)
def test_a_right_result_passes(case: Case) -> None:
    tensors = inputs.tensors_of(case, CPU)
    verdict = oracle.judge(case, tensors, *low(case, tensors))
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
    case = replace(case, problem=replace(problem, window=(-1, -1)), values="normal", lengths=(), spare=(0, 0))
    tensors = inputs.tensors_of(case, CPU)
    out, lse = low(case, tensors)
    assert oracle.judge(case, tensors, out, lse).reason == ""
    spoil(out, lse)
    assert oracle.judge(case, tensors, out, lse).reason != ""


def overlooking(feature: str, case: Case, tensors: inputs.Tensors) -> tuple[Case, inputs.Tensors] | None:
    """What a kernel sees that does not know the feature; None where the problem has not got it."""
    problem, extras = case.problem, tensors.extras
    if feature == "window":
        without = replace(problem, window=(-1, problem.window[1]))
    elif feature == "softcap":
        without = replace(problem, softcap=0.0)
    elif feature == "alignment":
        without = replace(problem, alignment="top_left")
    else:
        without_it = replace(tensors, extras=extras._replace(**{feature: None}))
        return None if getattr(extras, feature) is None else (case, without_it)
    return None if without == problem else (replace(case, problem=without), tensors)


@pytest.mark.parametrize("feature", ["window", "softcap", "alibi", "sinks", "mask", "alignment"])
def test_a_kernel_that_overlooks_a_feature_fails(feature: str) -> None:
    caught = 0
    for case in CASES:
        tensors = inputs.tensors_of(case, CPU)
        less = overlooking(feature, case, tensors)
        caught += less is not None and bool(oracle.judge(case, tensors, *low(*less)).reason)
        if caught == 3:
            return
    pytest.fail(f"only {caught} of these cases show that a kernel does not know {feature}")


def alone(**changes: object) -> Case:
    """A bf16 case of head dim 40, contiguous, not packed and of plain values; its values are those of its number."""
    case = next(case for case in CASES if case.problem.dtype == "bfloat16")
    problem = AttentionProblem(**{"head_dim": 40, "dtype": "bfloat16", "device": "cuda"} | changes)
    plain = replace(case, index=0, problem=problem, layouts=("bhsd", "bhsd", "bhsd"), values="normal")
    return replace(plain, lengths=(), spare=(0, 0), stretched="hqk")


def last_rows_of(out: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
    """Only the last block of rows is another result's."""
    return torch.cat((out[:, :, : -out.shape[2] % 64 - 64], other[:, :, -out.shape[2] % 64 - 64 :]), 2)


def one_key_too_many(case: Case, tensors: inputs.Tensors) -> tuple[Case, inputs.Tensors]:
    return replace(case, problem=replace(case.problem, causal=False, window=(-1, 1))), tensors


def a_larger_sink(case: Case, tensors: inputs.Tensors) -> tuple[Case, inputs.Tensors]:
    assert tensors.extras.sinks is not None
    return case, replace(tensors, extras=tensors.extras._replace(sinks=tensors.extras.sinks + 3))


def a_steeper_slope(case: Case, tensors: inputs.Tensors) -> tuple[Case, inputs.Tensors]:
    assert tensors.extras.alibi is not None
    return case, replace(tensors, extras=tensors.extras._replace(alibi=tensors.extras.alibi * 1.25))


@pytest.mark.parametrize("planted", [one_key_too_many, a_larger_sink, a_steeper_slope])
def test_a_fault_of_one_block_of_rows_fails_where_the_whole_tensor_hides_it(
    planted: Callable[..., tuple[Case, inputs.Tensors]],
) -> None:
    case = alone(batch=1, heads_q=4, heads_kv=2, seq_q=600, seq_kv=600, scale=0.05, causal=True, alibi=True)
    case = replace(case, problem=replace(case.problem, sinks=True))
    tensors = inputs.tensors_of(case, CPU)
    extras = tensors.extras._replace(alibi=torch.full((1, 4), 0.004), sinks=torch.full((4,), -1.0))
    tensors = replace(tensors, extras=extras)
    out, lse = low(case, tensors)
    assert oracle.judge(case, tensors, out, lse).reason == ""
    verdict = oracle.judge(case, tensors, last_rows_of(out, low(*planted(case, tensors))[0]), lse)
    assert "of 64 rows" in verdict.reason and verdict.error <= verdict.allowed


def test_what_float32_cannot_hold_may_be_zero_and_nothing_larger(monkeypatch: pytest.MonkeyPatch) -> None:
    """An H100 gave 0 where keys under a sink weigh less than 2^-126, and torch, that time, 8 bits of a denormal."""
    case = alone(batch=1, heads_q=4, heads_kv=2, seq_q=400, seq_kv=3, causal=True, alibi=True, sinks=True)
    tensors = inputs.tensors_of(case, CPU)
    slopes = torch.tensor([[0.2, 0.25, 0.3, 0.4]])
    tensors = replace(tensors, extras=tensors.extras._replace(alibi=slopes))
    plain = oracle.pieces
    out, lse = low(case, tensors)
    (piece,) = plain(case, tensors, out, lse)
    rounded = piece.exact.out.to(torch.bfloat16)  # the best that bf16 can do, denormals and all

    def strict(*given: object) -> list[oracle.Piece]:
        return [replace(each, low=replace(each.low, out=rounded)) for each in plain(*given)]  # type: ignore[arg-type]

    monkeypatch.setattr(oracle, "pieces", strict)
    weights = (piece.exact.size / tensors.value.abs().max()).log2()
    held = rounded.where(weights[..., None] > -126, 0.0)
    assert not torch.equal(held, rounded)
    assert oracle.judge(case, tensors, held, lse).reason == ""
    with monkeypatch.context() as without:
        without.setattr(oracle, "FLUSHED", 0.0)
        assert "of 64 rows" in oracle.judge(case, tensors, held, lse).reason
    lost = rounded.where(weights[..., None] > -110, 0.0)
    assert "of 64 rows" in oracle.judge(case, tensors, lost, lse).reason


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
        placed = inputs._placed(values, where, exact=False)
        assert placed.stride() == wanted and torch.equal(placed, values)
        assert placed.data_ptr() % 16 == (2 if where == "misaligned" else 0)
        storage = torch.tensor([], dtype=torch.float16).set_(placed.untyped_storage())
        assert int((~torch.isnan(storage)).sum()) == values.numel()
    assert inputs._placed(values, "expanded", exact=False).stride(0) == 0
    assert inputs._placed(values[:1], "expanded", exact=False).stride(1) == 0


def test_a_write_outside_of_the_results_is_seen() -> None:
    results = inputs.Results(exact=False)
    out = results.out(torch.zeros(1, 2, 3, 8, dtype=torch.float16).transpose(1, 2), 8)
    assert out.stride() == empty_out(torch.zeros(1, 2, 3, 8).transpose(1, 2), 8).stride()
    assert bool(torch.isnan(out).all()) and not results.strayed()
    out.fill_(1.0)
    lse = results.lse(out)
    assert lse.shape == empty_lse(out).shape and not results.strayed()
    torch.as_strided(out, (1,), (1,), out.storage_offset() + out.numel()).fill_(0.0)
    assert results.strayed()
