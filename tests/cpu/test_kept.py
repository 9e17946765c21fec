"""Which calls the front ends keep, and which they ask for: with calls of CPU tensors in the place of a GPU's."""

from dataclasses import replace
from typing import Any

import pytest
import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.attention.bias import causal_upper_left

from attention import flash_attn_func, flash_attn_varlen_func, sdpa
from attention.call import Extras, Manner, Options
from attention.choose.while_new import CALLS_OF_A_SHAPE, Settling, Tally
from attention.errors import ArgumentError
from attention.frontends import kept
from attention.frontends import sdpa as frontend
from attention.frontends.flash_attn import kept as kept_of_flash
from attention.frontends.route import Route
from attention.kernels.torch import flash
from attention.kernels.torch.common.own import within
from attention.op import by_plan
from attention.op.known import Known
from attention.op.plan import Plan
from attention.problem import AttentionProblem
from attention.torch_private import torch_sdpa
from attention.variant import Config
from tests.tensors import random

pytestmark = [
    pytest.mark.usefixtures("host_machine"),
    pytest.mark.filterwarnings("ignore::attention.errors.FallbackWarning"),
]
SHAPE = (1, 2, 8, 16)
MARK = torch.zeros(1)
PLAIN = (False, None, False, False, None)
ASKED = AttentionProblem(1, 2, 2, 8, 8, 16)
CAPPED = replace(ASKED, softcap=30.0)  # which torch's function has no argument for


@pytest.fixture
def known(monkeypatch: pytest.MonkeyPatch) -> Known:
    found = Known(of_cpu=True)
    for module in (kept, frontend, kept_of_flash):
        monkeypatch.setattr(module, "KNOWN", found)
    return found


def served_by_mark(known: Known, *options: Any) -> list[torch.Tensor]:
    inputs = random(*[SHAPE] * 3)
    known.keep(*inputs, options, lambda *_: MARK)
    return inputs


def route(**more: Any) -> Route:
    plan: Any = Plan(None, Config(), lambda *_: None, "torch", None)  # type: ignore[arg-type, return-value]
    return Route(fold=False, plan=plan, **more)


def test_sdpa_asks_for_a_call_without_mask_and_dropout(known: Known) -> None:
    inputs = served_by_mark(known, True, None, False, False, None)
    assert sdpa(*inputs, is_causal=True) is MARK
    for options in ({}, {"dropout_p": 0.5}, {"attn_mask": torch.zeros(8, 8)}, {"attn_mask": causal_upper_left(8, 8)}):
        assert sdpa(*inputs, **options) is not MARK
    with pytest.raises(ArgumentError, match="is_causal"):
        sdpa(*inputs, is_causal=1)  # type: ignore[arg-type]


def test_torchs_backends_are_asked_for_by_name(known: Known) -> None:
    inputs = served_by_mark(known, False, None, False, False, None)
    assert sdpa(*inputs) is MARK
    with sdpa_kernel(SDPBackend.MATH):
        assert sdpa(*inputs) is not MARK


OF_FLASH = (0.0, None, False, (-1, -1), 0.0, False, False, None, False)


@pytest.mark.parametrize("options", [{"return_lse": True}, {"alibi_slopes": torch.ones(8)}, {"sinks": torch.ones(8)}])
def test_flash_attn_func_asks_for_a_call_of_out_alone(known: Known, options: dict[str, Any]) -> None:
    inputs = served_by_mark(known, *OF_FLASH)
    assert flash_attn_func(*inputs) is MARK and flash_attn_func(*inputs, causal=False) is MARK
    assert flash_attn_func(*inputs, **options) is not MARK
    assert flash_attn_func(*inputs, return_attn_probs=True) is not MARK
    assert flash_attn_func(*inputs, window_size=[-1, -1]) is not MARK  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("is_causal", "scale", "gqa"), [(False, None, False), (True, 0.0625, True), (False, 0.5, False)]
)
def test_a_call_that_is_torchs_stays_torchs(known: Known, is_causal: bool, scale: float | None, gqa: bool) -> None:
    inputs = random(SHAPE, (1, 1, 8, 16) if gqa else SHAPE, (1, 1, 8, 16) if gqa else SHAPE, seed=1)
    options = (is_causal, scale, gqa, False, None)
    kept.keep(route(to_torch=True), False, *inputs, None, options, Options(causal=is_causal, scale=scale))
    found = known.served(*inputs, options)
    assert torch.equal(found, torch_sdpa(*inputs, is_causal=is_causal, scale=scale, enable_gqa=gqa))
    within.own = torch_sdpa  # an override is on, which knows what stands behind it
    try:
        assert known.served(*inputs, options) is None
    finally:
        within.own = None


def test_what_torch_reads_a_copy_of_is_not_kept(known: Known) -> None:
    inputs = [each.transpose(2, 3) for each in random(*[(1, 2, 16, 8)] * 3)]
    kept.keep(route(to_torch=True), False, *inputs, None, PLAIN, Options())
    assert not known.calls


def test_a_strict_call_with_gradients_is_judged_each_time(known: Known) -> None:
    """Whether a fused backward serves may change with torch's switches."""
    inputs = random(*[SHAPE] * 3, grad=True)
    for strict in (True, False):
        kept.keep(route(to_torch=True), False, *inputs, None, (False, None, False, strict, None), Options())
        assert len(known.calls) == (not strict)


def test_a_kernel_of_torchs_serves_the_next_calls_of_flash_attn_func(known: Known) -> None:
    seen: list[tuple[int, ...]] = []

    def run(query: torch.Tensor, *others: Any) -> tuple[torch.Tensor, torch.Tensor]:
        seen.append(tuple(query.shape))
        return query + 1, query

    plan = Plan(CAPPED, Config(), run, "torch", None)
    inputs = random(*[SHAPE] * 3)
    kept_of_flash.keep(plan, *inputs, OF_FLASH, Options(), Manner("", False))
    assert torch.equal(flash_attn_func(*inputs), inputs[0] + 1)  # type: ignore[arg-type]
    assert seen == [(1, 8, 2, 16)]  # heads first, as every kernel takes them


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("scale", [None, 0.5])
def test_torchs_function_serves_the_next_calls_of_flash_attn_func_that_it_has(
    known: Known, causal: bool, scale: float | None
) -> None:
    plan = Plan(replace(ASKED, causal=causal, scale=scale), Config(), lambda *_: pytest.fail("by name"), "torch", None)
    inputs, given = random((1, 8, 2, 16), *[(1, 8, 1, 16)] * 2), (0.0, scale, causal, *OF_FLASH[3:])
    kept_of_flash.keep(replace(plan, problem=replace(plan.problem, heads_kv=1)), *inputs, given, Options(), Manner())
    found = flash_attn_func(*inputs, softmax_scale=scale, causal=causal)
    turned = (each.transpose(1, 2) for each in inputs)
    assert torch.equal(found, torch_sdpa(*turned, is_causal=causal, scale=scale, enable_gqa=True).transpose(1, 2))  # type: ignore[arg-type]
    assert found.is_contiguous()  # type: ignore[union-attr]


@pytest.mark.parametrize("with_lse", [False, True])
def test_rows_that_end_at_the_last_key_are_the_operators_alone(
    known: Known, monkeypatch: pytest.MonkeyPatch, with_lse: bool
) -> None:
    inputs, given = random((1, 4, 2, 16), *[(1, 8, 1, 16)] * 2), (0.0, 0.5, True, *OF_FLASH[3:8], with_lse)
    problem = AttentionProblem(1, 2, 1, 4, 8, 16, scale=0.5, causal=True, alignment="bottom_right")
    asked: list[Any] = []

    def operator(*them: Any, scale: float) -> tuple[torch.Tensor]:
        asked.append((*map(torch.Tensor.size, them[:3]), *them[3:], scale))
        return (them[0] + 1,)

    monkeypatch.setattr(by_plan, "torch_flash", operator)
    plan = Plan(problem, Config(), flash.forward, "torch", None)
    kept_of_flash.keep(plan, *inputs, given, Options(scale=0.5), Manner())
    if with_lse:  # which the plan alone gives
        assert isinstance(next(iter(known.calls.values())).serve, by_plan.ByPlan)
        return
    found = flash_attn_func(*inputs, softmax_scale=0.5, causal=True)
    assert torch.equal(found, inputs[0] + 1)  # type: ignore[arg-type]
    assert asked == [((1, 2, 4, 16), *[(1, 1, 8, 16)] * 2, 0.0, True, False, 0.5)]


FROM_THE_END = AttentionProblem(1, 2, 1, 4, 8, 16, causal=True, alignment="bottom_right")


@pytest.mark.parametrize(
    ("change", "wanted"),
    [
        ({}, True),
        ({"seq_q": 9}, False),  # rows that see nothing have an lse of their own
        ({"window": (2, 0)}, False),
        ({"head_dim": 12, "head_dim_v": 12}, False),  # which would be padded
        ({"alignment": "top_left"}, False),
        ({"causal": False}, False),
    ],
)
def test_the_operator_is_all_of_a_call_only_where_it_aligns_causality_alike(
    change: dict[str, Any], wanted: bool
) -> None:
    def is_of_flash(run: Any) -> bool:
        return by_plan.is_of_flash(Plan(replace(FROM_THE_END, **change), Config(), run, "torch", None))

    assert is_of_flash(flash.forward) == wanted and not is_of_flash(lambda *_: None)


def test_a_kernel_of_torchs_is_given_features_as_a_judged_call_gives_them(known: Known) -> None:
    seen: list[Extras] = []

    def run(query: torch.Tensor, key: Any, value: Any, problem: Any, config: Any, extras: Extras) -> Any:
        seen.append(extras)
        return query + 1, query[..., 0]

    plan = Plan(CAPPED, Config(), run, "torch", None)
    inputs, slopes, starts = random((8, 2, 16), (8, 2, 16), (8, 2, 16)), torch.ones(2).half(), torch.tensor([0, 3, 8])
    given = (*OF_FLASH[:-1], True, 5, 5)
    kept_of_flash.keep(plan, *inputs, given, Options(), Manner(), (slopes, None, None, None, None, starts, starts))
    out, lse = flash_attn_varlen_func(*inputs, starts, starts, 5, 5, alibi_slopes=slopes, return_lse=True)
    assert torch.equal(out, inputs[0] + 1) and torch.equal(lse, inputs[0][..., 0].T)
    (extras,) = seen
    assert extras.alibi.dtype == torch.float32 and extras.alibi.shape == (2, 2) and extras.sinks is None
    assert extras.cu_seqlens_q.dtype == torch.int32 and torch.equal(extras.cu_seqlens_q.long(), starts)


@pytest.mark.parametrize("shape", [(8, 8), (1, 1, 8, 8)])
@pytest.mark.parametrize("dtype", [torch.bool, torch.float32])
def test_a_masked_call_that_is_torchs_stays_torchs(
    known: Known, shape: tuple[int, ...], dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch
) -> None:
    inputs, mask = random(*[SHAPE] * 3), (torch.arange(64) % 3 > 0).to(dtype).view(shape)
    kept.keep(route(to_torch=True), False, *inputs, mask, PLAIN, Options())
    monkeypatch.setattr(frontend, "_judged", lambda *_: pytest.fail("a known call was judged"))
    assert torch.equal(sdpa(*inputs, mask), torch_sdpa(*inputs, mask))
    assert known.served(*inputs, PLAIN) is None and known.served(*inputs, PLAIN, (mask[..., :1],)) is None


def test_torch_makes_a_mask_of_causality_that_ends_at_the_last_key_each_time(known: Known) -> None:
    for options in (Options(causal=True), Options(causal=True, bottom_right=True)):
        kept.keep(route(to_torch=True), False, *random(*[SHAPE] * 3), None, PLAIN, options)
        assert len(known.calls) == 1


def test_a_shape_of_flash_attn_func_that_is_called_often_changes_over(known: Known) -> None:
    def run(added: float) -> Any:
        return lambda query, *_: (query + added, query)

    plan = Plan(CAPPED, Config(), Settling(run(1), run(2)), "torch", None, settles=True)
    inputs = random(*[SHAPE] * 3)
    kept_of_flash.keep(plan, *inputs, OF_FLASH, Options(), Manner("", False))
    added = [flash_attn_func(*inputs) - inputs[0] for _ in range(CALLS_OF_A_SHAPE + 2)]  # type: ignore[operator]
    assert [round(float(each.mean())) for each in added] == [1] * CALLS_OF_A_SHAPE + [2, 2]


def test_a_shape_of_sdpa_that_is_called_often_becomes_torchs(known: Known, monkeypatch: pytest.MonkeyPatch) -> None:
    inputs, early = random(*[SHAPE] * 3), torch.zeros(SHAPE)
    monkeypatch.setattr(by_plan, "torch_flash", lambda *_, **__: (early,))
    new = route(kernel=lambda *_: early, tally=Tally())
    kept.keep(new, False, *inputs, None, PLAIN, Options())
    found = [sdpa(*inputs) for _ in range(CALLS_OF_A_SHAPE + 2)]
    assert all(each is early for each in found[:CALLS_OF_A_SHAPE])
    assert all(torch.equal(each, torch_sdpa(*inputs)) for each in found[CALLS_OF_A_SHAPE:])


def test_what_is_served_by_nobody_later_on_is_not_kept(known: Known) -> None:
    plan = Plan(CAPPED, Config(), Settling(lambda *_: None, lambda *_: None), "smscope", None)
    kept_of_flash.keep(plan, *random(*[SHAPE] * 3), OF_FLASH, Options(), Manner("", False))
    assert not known.calls
