"""Arguments by the names and in the kinds that callers of flash-attn pass them."""

import inspect

import numpy as np
import pytest
import torch

import attention
from attention import (
    ArgumentError,
    ProblemError,
    UnsupportedError,
    explain_flash_attn_func,
    explain_flash_attn_varlen_func,
    flash_attn_func,
    flash_attn_kvpacked_func,
    flash_attn_qkvpacked_func,
    flash_attn_varlen_func,
    flash_attn_varlen_kvpacked_func,
    flash_attn_varlen_qkvpacked_func,
)
from attention.frontends.flash_attn.arguments import REFUSED
from attention.op import plan

pytestmark = [pytest.mark.usefixtures("host_machine"), pytest.mark.filterwarnings("ignore::attention.FallbackWarning")]
GENERATOR = torch.Generator().manual_seed(5)
QKV = torch.randn(2, 6, 3, 2, 8, generator=GENERATOR)
Q, K, V = QKV.unbind(2)
SINKS = torch.tensor([0.5, -1.0])
FLAT = QKV[0].unbind(1)
STARTS = torch.tensor([0, 4, 6], dtype=torch.int32)
LENGTHS = (STARTS, STARTS, 4, 4)


def names(function):
    return tuple(inspect.signature(function).parameters)


# The order of flash-attn 2.8, whose callers may pass all of these by place.
ORDER = ("dropout_p", "softmax_scale", "causal", "window_size", "softcap", "alibi_slopes", "deterministic")
ORDER += ("return_attn_probs",)
PACKED = ("cu_seqlens_q", "cu_seqlens_k", "max_seqlen_q", "max_seqlen_k")


@pytest.mark.parametrize(
    ("function", "first"),
    [
        (flash_attn_func, ("q", "k", "v", *ORDER)),
        (flash_attn_varlen_func, ("q", "k", "v", *PACKED, *ORDER, "block_table")),
        (flash_attn_qkvpacked_func, ("qkv", *ORDER)),
        (flash_attn_kvpacked_func, ("q", "kv", *ORDER)),
        (flash_attn_varlen_qkvpacked_func, ("qkv", "cu_seqlens", "max_seqlen", *ORDER)),
        (flash_attn_varlen_kvpacked_func, ("q", "kv", *PACKED, *ORDER)),
    ],
)
def test_arguments_by_place_have_flash_attns_order(function, first):
    kinds = inspect.Parameter
    by_place = [each.name for each in inspect.signature(function).parameters.values()][: len(first)]
    assert tuple(by_place) == first
    after = list(inspect.signature(function).parameters.values())[len(first) :]
    assert all(each.kind in (kinds.KEYWORD_ONLY, kinds.VAR_KEYWORD) for each in after)
    assert function.__name__ in attention.__all__


def test_names_that_transformers_looks_for_are_in_the_signatures():
    wanted = {"dropout_p", "softmax_scale", "causal", "window_size", "softcap", "deterministic", "s_aux"}
    wanted |= {"learnable_sink"}
    assert wanted <= set(names(flash_attn_func))
    assert wanted | {"max_seqlen_q", "max_seqlen_k", "cu_seqlens_q", "cu_seqlens_k"} <= set(
        names(flash_attn_varlen_func)
    )


@pytest.mark.parametrize("name", ["s_aux", "learnable_sink"])
def test_sinks_are_sinks_by_each_of_their_names(name):
    expected = flash_attn_func(Q, K, V, sinks=SINKS)
    assert not torch.equal(expected, flash_attn_func(Q, K, V))
    assert torch.equal(flash_attn_func(Q, K, V, **{name: SINKS}), expected)
    assert torch.equal(flash_attn_func(Q, K, V, sinks=SINKS, **{name: SINKS}), expected)
    packed = flash_attn_varlen_func(*FLAT, *LENGTHS, **{name: SINKS})
    assert torch.equal(packed, flash_attn_varlen_func(*FLAT, *LENGTHS, sinks=SINKS))
    assert "attention sinks" in explain_flash_attn_func(Q, K, V, **{name: SINKS}).choice.problem.features
    for call in (flash_attn_func, explain_flash_attn_func):
        with pytest.raises(ArgumentError, match=f"sinks and {name} name the same argument"):
            call(Q, K, V, sinks=SINKS.clone(), **{name: SINKS})


def test_sinks_of_16_bits_get_their_gradient():
    sinks = SINKS.bfloat16().requires_grad_()
    out = flash_attn_func(Q.bfloat16(), K.bfloat16(), V.bfloat16(), s_aux=sinks)
    (grad,) = torch.autograd.grad(out.sum(), sinks)
    assert grad.dtype is torch.bfloat16 and grad.ne(0).all()


SAME = [
    ({"causal": 1}, {"causal": True}),
    ({"causal": np.bool_(True)}, {"causal": True}),
    ({"causal": torch.tensor(True)}, {"causal": True}),
    ({"causal": None}, {"causal": False}),
    ({"softcap": None}, {"softcap": 0.0}),
    ({"softcap": 15}, {"softcap": 15.0}),
    ({"softcap": np.float32(0.5)}, {"softcap": 0.5}),
    ({"softmax_scale": torch.tensor(0.25)}, {"softmax_scale": 0.25}),
    ({"window_size": None}, {"window_size": (-1, -1)}),
    ({"window_size": (None, None)}, {"window_size": (-1, -1)}),
    ({"window_size": [2, None]}, {"window_size": (2, -1)}),
    ({"window_size": (np.int64(2), torch.tensor(1))}, {"window_size": (2, 1)}),
    ({"window_size": torch.tensor([2, 1])}, {"window_size": (2, 1)}),
    ({"dropout_p": 0}, {"dropout_p": 0.0}),
]


@pytest.mark.parametrize(("given", "plain"), SAME)
def test_numbers_of_other_kinds_mean_the_same_and_are_no_new_call(given, plain):
    plan.plan_of.cache_clear()
    expected = flash_attn_func(Q, K, V, **plain), flash_attn_varlen_func(*FLAT, *LENGTHS, **plain)
    found = flash_attn_func(Q, K, V, **given), flash_attn_varlen_func(*FLAT, *LENGTHS, **given)
    assert all(map(torch.equal, found, expected))
    assert plan.plan_of.cache_info().misses == 2
    assert explain_flash_attn_func(Q, K, V, **given) == explain_flash_attn_func(Q, K, V, **plain)


@pytest.mark.parametrize(
    "longest", [np.int32(4), np.int64(4), torch.tensor(4), torch.tensor(4, dtype=torch.int32), None]
)
@pytest.mark.parametrize("starts", [STARTS, STARTS.long()])
def test_lengths_of_other_kinds_mean_the_same_and_are_no_new_call(longest, starts):
    expected = flash_attn_varlen_func(*FLAT, starts, starts, 4, 4, causal=True)
    before = plan.plan_of.cache_info().misses
    assert torch.equal(flash_attn_varlen_func(*FLAT, starts, starts, longest, longest, causal=True), expected)
    assert plan.plan_of.cache_info().misses == before
    assert torch.equal(expected, flash_attn_varlen_func(*FLAT, *LENGTHS, causal=True))
    problem = explain_flash_attn_varlen_func(*FLAT, starts, starts, longest, longest).choice.problem
    assert (problem.seq_q, problem.seq_kv) == (4, 4)


@pytest.mark.parametrize(
    ("call", "tensors"), [(flash_attn_func, (Q, K, V)), (flash_attn_varlen_func, (*FLAT, *LENGTHS))]
)
def test_each_way_of_asking_for_lse_returns_what_its_callers_unpack(call, tensors):
    out, lse = call(*tensors, return_lse=True)
    assert isinstance(call(*tensors), torch.Tensor)
    for one, other in zip(call(*tensors, return_softmax_lse=True), (out, lse), strict=True):
        assert torch.equal(one, other)
    for options in ({}, {"return_lse": True}):
        mine, log, nothing = call(*tensors, return_attn_probs=True, **options)
        assert torch.equal(mine, out) and torch.equal(log, lse) and nothing is None


@pytest.mark.parametrize("hint", ["num_splits", "pack_gqa", "sm_margin", "scheduler_metadata", "fa_version"])
def test_hints_are_taken_and_ignored_and_the_explanation_says_so(hint):
    assert torch.equal(flash_attn_func(Q, K, V, **{hint: 3}), flash_attn_func(Q, K, V))
    assert torch.equal(flash_attn_varlen_func(*FLAT, *LENGTHS, **{hint: 3}), flash_attn_varlen_func(*FLAT, *LENGTHS))
    for found in (
        explain_flash_attn_func(Q, K, V, **{hint: 3}),
        explain_flash_attn_varlen_func(*FLAT, *LENGTHS, **{hint: 3}),
    ):
        assert sum("ignored" in note and hint in note for note in found.notes) == 1
    assert not any("ignored" in note for note in explain_flash_attn_func(Q, K, V).notes)


@pytest.mark.parametrize("name", REFUSED)
def test_what_would_change_the_result_is_refused_by_name_unless_it_asks_for_nothing(name):
    for call, tensors in (
        (flash_attn_func, (Q, K, V)),
        (flash_attn_varlen_func, (*FLAT, *LENGTHS)),
        (explain_flash_attn_func, (Q, K, V)),
        (explain_flash_attn_varlen_func, (*FLAT, *LENGTHS)),
    ):
        with pytest.raises(UnsupportedError, match=f"{name} is not supported: "):
            call(*tensors, **{name: torch.ones(1)})
        call(*tensors, **{name: None})
    flash_attn_func(Q, K, V, attention_chunk=0)


def test_a_name_that_nobody_has_is_pythons_own_error():
    for call in (flash_attn_func, explain_flash_attn_func):
        with pytest.raises(TypeError, match=rf"{call.__name__}\(\) got an unexpected keyword argument 'is_causal'"):
            call(Q, K, V, is_causal=True)


def test_packed_forms_are_the_same_call():
    options = {"causal": True, "s_aux": SINKS, "return_lse": True}
    for one, other in (
        (flash_attn_qkvpacked_func(QKV, **options), flash_attn_func(Q, K, V, **options)),
        (flash_attn_kvpacked_func(Q, QKV[:, :, 1:], **options), flash_attn_func(Q, K, V, **options)),
        (
            flash_attn_varlen_qkvpacked_func(QKV[0], STARTS, 4, **options),
            flash_attn_varlen_func(*FLAT, *LENGTHS, **options),
        ),
        (
            flash_attn_varlen_kvpacked_func(FLAT[0], QKV[0, :, 1:], *LENGTHS, **options),
            flash_attn_varlen_func(*FLAT, *LENGTHS, **options),
        ),
    ):
        assert all(map(torch.equal, one, other))


def test_heads_of_q_may_be_counted_as_flash_attention_3_does():
    qkv = torch.cat((Q.repeat_interleave(2, 2), K, V), 2)
    expected = flash_attn_func(Q.repeat_interleave(2, 2), K, V, causal=True)
    assert torch.equal(flash_attn_qkvpacked_func(qkv, causal=True, num_heads_q=4), expected)


def test_a_length_that_a_graph_computes_is_a_number_of_it():
    """As Transformers passes the longest sequence, where torch is told to keep such numbers in the graph."""
    torch.compiler.reset()

    def call(starts):
        longest = starts.diff().max()
        return flash_attn_varlen_func(*FLAT, starts, starts, longest, longest.item(), causal=True)

    with torch._dynamo.config.patch(capture_scalar_outputs=True):
        compiled = torch.compile(call, fullgraph=True, backend="aot_eager")
        for starts in (STARTS.long(), torch.tensor([0, 1, 6])):
            torch.testing.assert_close(compiled(starts), call(starts), rtol=0, atol=5e-6)


def test_the_gradient_of_a_packed_tensor_is_that_of_its_parts():
    qkv = QKV.double().requires_grad_()
    assert torch.autograd.gradcheck(lambda t: flash_attn_qkvpacked_func(t, causal=True), (qkv,), fast_mode=True)
    flat = QKV[0].double().requires_grad_()
    assert torch.autograd.gradcheck(lambda t: flash_attn_varlen_qkvpacked_func(t, STARTS, 4), (flat,), fast_mode=True)


@pytest.mark.parametrize(
    ("call", "error", "says"),
    [
        (lambda: flash_attn_qkvpacked_func(Q), ProblemError, r"qkv has shape \(2, 6, 2, 8\); give it the layout"),
        (lambda: flash_attn_qkvpacked_func(QKV[:, :, :2]), ProblemError, "sequence, 3, heads"),
        (lambda: flash_attn_qkvpacked_func(QKV[:, :, 0], num_heads_q=2), ProblemError, "num_heads_q is 2; give"),
        (lambda: flash_attn_qkvpacked_func(QKV[:, :, 0], num_heads_q="2"), ArgumentError, "the heads of q"),
        (lambda: flash_attn_kvpacked_func(Q, QKV), ProblemError, r"kv has shape .* \(batch, sequence, 2, heads"),
        (lambda: flash_attn_varlen_qkvpacked_func(QKV, STARTS, 4), ProblemError, r"layout \(tokens, 3"),
        (lambda: flash_attn_varlen_kvpacked_func(FLAT[0], None, *LENGTHS), ArgumentError, "kv is a NoneType"),
    ],
)
def test_packed_tensors_of_another_layout_are_named(call, error, says):
    with pytest.raises(error, match=says):
        call()


def test_a_compiled_graph_has_no_break_whatever_the_arguments_kind():
    torch.compiler.reset()

    def call(qkv, sinks, starts):
        options = {"causal": 1, "window_size": (4, None), "softcap": None, "s_aux": sinks, "num_splits": 1}
        out = flash_attn_qkvpacked_func(qkv, **options)
        flat = qkv.flatten(0, 1)
        return out, *flash_attn_varlen_qkvpacked_func(flat, starts, None, window_size=None, return_attn_probs=True)[:2]

    compiled = torch.compile(call, fullgraph=True, backend="aot_eager", dynamic=True)
    for rows in (6, 5):
        given = (QKV[:, :rows], SINKS, torch.tensor([0, rows, 2 * rows]))
        for one, other in zip(compiled(*given), call(*given), strict=True):
            torch.testing.assert_close(one, other, rtol=0, atol=5e-6)


@pytest.mark.parametrize("starts", [[0, 2**32 + 16, 32], [0, 2**32, 2**32 + 32], [0, -(2**32) + 16, 32]])
def test_starts_beyond_32_bits_are_refused_and_not_wrapped_around(starts):
    q = torch.randn(32, 2, 8)
    with pytest.raises(ProblemError, match="must rise from 0 to at most the 32 rows"):
        flash_attn_varlen_func(q, q, q, torch.tensor(starts), torch.tensor(starts), 16, 16)
