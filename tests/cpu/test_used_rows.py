"""seqused_q, seqused_k and leftpad_k: attention of the rows that each sequence uses of its slot."""

import warnings

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx.experimental.proxy_tensor import make_fx

from attention import (
    FallbackWarning,
    ProblemError,
    UnsupportedError,
    explain_flash_attn_func,
    explain_flash_attn_varlen_func,
    flash_attn_func,
    flash_attn_kvpacked_func,
    flash_attn_varlen_func,
)
from attention.frontends.flash_attn import functions, judge
from attention.frontends.flash_attn.arguments import extras_of, options_of
from attention.judge.shapes import FLASH, facts_of
from attention.op import plan
from tests.cpu.used_cases import oracle, places, used_cases

pytestmark = [pytest.mark.usefixtures("host_machine"), pytest.mark.filterwarnings("ignore::attention.FallbackWarning")]
Q, K, V = torch.randn(3, 2, 6, 2, 4, generator=torch.Generator().manual_seed(1))
STARTS = torch.tensor([0, 4, 6], dtype=torch.int32)


def numbers(*values):
    return torch.tensor(values, dtype=torch.int32)


@settings(max_examples=120, deadline=None, derandomize=True)
@given(drawn=used_cases(longest=20, widest=12))
def test_what_is_used_is_attended_to_and_nothing_else(drawn):
    case, used = drawn
    tensors = case.tensors()
    out, lse = case.call(*tensors, **used)
    expected, expected_lse = oracle(case, used, *tensors)
    np.testing.assert_allclose(out, expected, rtol=0, atol=1e-10)
    np.testing.assert_allclose(lse, expected_lse, rtol=0, atol=1e-10)
    assert lse.is_contiguous() and (out.is_contiguous() or case.layout != "dense")


@settings(max_examples=40, deadline=None, derandomize=True)
@given(drawn=used_cases(longest=9, widest=5))
def test_rows_that_are_not_used_are_never_read_and_have_no_gradient(drawn):
    case, used = drawn
    clean = case.tensors()
    q, k, v = (torch.full_like(t, torch.nan) for t in clean[:3])
    for rows, keys in places(case, used):
        q[rows], k[keys], v[keys] = clean[0][rows], clean[1][keys], clean[2][keys]
    inputs = [None if t is None else t.detach().requires_grad_() for t in (q, k, v, *clean[3:])]
    out, lse = case.call(*inputs, **used)
    expected, _ = oracle(case, used, *clean)
    np.testing.assert_allclose(out.detach(), expected, rtol=0, atol=1e-10)
    wanted = [t for t in inputs if t is not None]
    # A gradient that is NaN where nothing was computed, as of a loss that divides by a length of 0, stays out too.
    seed = torch.full_like(out, torch.nan) if "seqused_q" in used else torch.ones_like(out)
    for rows, _ in places(case, used):
        seed[rows] = 1.0
    grads = torch.autograd.grad((out, lse), wanted, (seed, torch.ones_like(lse)))
    kept = [torch.zeros_like(t) for t in (q, k, v)]
    for rows, keys in places(case, used):
        kept[0][rows], kept[1][keys], kept[2][keys] = 1.0, 1.0, 1.0
    assert all(grad.isfinite().all() for grad in grads)
    assert all(grad[keep == 0].eq(0).all() for grad, keep in zip(grads, kept, strict=False))


@settings(max_examples=15, deadline=None, derandomize=True)
@given(drawn=used_cases(longest=5, widest=3))
def test_gradients_of_every_input_are_those_of_finite_differences(drawn):
    case, used = drawn
    q, k, v, slopes, sinks = (None if t is None else t.double().contiguous() for t in case.tensors())
    inputs = [t.requires_grad_() for t in (q, k, v, slopes, sinks) if t is not None and t.numel()]

    def forward(*_):
        out, lse = case.call(q, k, v, slopes, sinks, **used)
        return out, lse.masked_fill(lse == -torch.inf, 0.0)

    assert not inputs or torch.autograd.gradcheck(forward, inputs, eps=1e-6, atol=1e-6)


def test_a_compiled_graph_has_no_break_and_gives_the_same():
    torch.compiler.reset()

    def call(q, k, v, used_q, used_k, first):
        options = {"seqused_q": used_q, "seqused_k": used_k, "leftpad_k": first, "causal": True, "return_lse": True}
        padded = flash_attn_func(q, k, v, **options)
        flat = (t.flatten(0, 1) for t in (q, k, v))
        starts = torch.arange(len(q) + 1) * q.shape[1]
        return *padded, *flash_attn_varlen_func(*flat, starts, starts, q.shape[1], None, **options)

    compiled = torch.compile(call, fullgraph=True, backend="aot_eager", dynamic=True)
    for rows in (6, 5):
        given_ = (Q[:, :rows], K[:, :rows], V[:, :rows], numbers(2, 4), numbers(5, 3), numbers(1, 0))
        for one, other in zip(compiled(*given_), call(*given_), strict=True):
            torch.testing.assert_close(one, other, rtol=0, atol=5e-6)


def test_numbers_are_not_read_where_there_are_none_yet():
    used = {"seqused_q": numbers(3, 6), "seqused_k": numbers(3, 6), "leftpad_k": numbers(0, 1)}

    def call(*given):
        return flash_attn_func(*given[:3], **dict(zip(used, given[3:], strict=True)))

    given_ = (Q, K, V, *used.values())
    with FakeTensorMode() as mode:
        assert call(*(mode.from_tensor(t) for t in given_)).shape == Q.shape
    assert call(*(t.to("meta") for t in given_)).shape == Q.shape
    traced = make_fx(call)(*given_)
    torch.testing.assert_close(traced(*given_), call(*given_), rtol=0, atol=0)
    with pytest.raises(ProblemError, match="must rise"):
        traced(Q, K, V, numbers(3, 7), *given_[4:])


def test_a_packed_form_takes_them_too():
    options = {"seqused_k": numbers(3, 5), "causal": True}
    found = flash_attn_kvpacked_func(Q, torch.stack((K, V), 2), **options)
    assert torch.equal(found, flash_attn_func(Q, K, V, **options))


def test_the_longest_may_be_the_longest_that_is_used():
    flat = tuple(t.flatten(0, 1)[:6] for t in (Q, K, V))
    used = {"seqused_q": numbers(3, 1), "seqused_k": numbers(2, 1)}
    found = flash_attn_varlen_func(*flat, STARTS, STARTS, 3, 2, **used)
    expected = flash_attn_func(Q[:1, :3], K[:1, :2], V[:1, :2])[0]
    torch.testing.assert_close(found[:3], expected, rtol=0, atol=5e-6)
    for longest, says in (((2, 2), "max_seqlen_q is 2, and one sequence uses 3"), ((3, 1), "max_seqlen_k is 1, .* 2")):
        with pytest.raises(ProblemError, match=says):
            flash_attn_varlen_func(*flat, STARTS, STARTS, *longest, **used)


def test_one_warning_names_the_reason_and_strict_raises():
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for count in (3, 4, 5):
            flash_attn_func(Q, K, V, seqused_k=numbers(count, 2))
    said = [str(each.message) for each in caught if each.category is FallbackWarning]
    assert len(said) == 1 and "variable lengths" in said[0]
    for options in ({"strict": True}, {"only": "smscope"}):
        with pytest.raises(UnsupportedError, match="variable lengths"):
            flash_attn_func(Q, K, V, seqused_k=numbers(3, 2), **options)


@settings(max_examples=60, deadline=None, derandomize=True)
@given(drawn=used_cases(longest=20, widest=12))
def test_the_operator_reads_the_same_numbers(drawn):
    """As kernels on a GPU are given them, by the slow path."""
    case, used = drawn
    tensors = case.tensors()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(functions.used_rows, "split", lambda extras: extras.ranged())
        patch.setattr(
            functions.used_rows, "unused_queries", lambda starts, extras, tokens: starts.new_zeros(tokens) > 0
        )
        patch.setattr(functions.used_rows, "with_room", lambda options, *_: options)
        inputs = [None if t is None else t.detach().requires_grad_() for t in tensors]
        out, lse = case.call(*inputs, **{name: each.int() for name, each in used.items()})
        expected, expected_lse = oracle(case, used, *tensors)
        np.testing.assert_allclose(out.detach(), expected, rtol=0, atol=1e-10)
        np.testing.assert_allclose(lse.detach(), expected_lse, rtol=0, atol=1e-10)
        wanted = [t for t in inputs if t is not None]
        grads = torch.autograd.grad((out, lse), wanted, (torch.ones_like(out), torch.ones_like(lse)))
    out, lse = case.call(*inputs, **used)
    others = torch.autograd.grad((out, lse), wanted, (torch.ones_like(out), torch.ones_like(lse)))
    for one, other in zip(grads, others, strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=1e-9)


def test_new_numbers_are_no_new_choice():
    for count in range(1, 5):
        flash_attn_func(Q, K, V, seqused_k=numbers(count, 2), leftpad_k=numbers(0, 1))
    assert plan.plan_of.cache_info().misses == 1


def test_the_explanation_is_of_the_packed_problem_that_is_computed():
    used = {"seqused_q": numbers(3, 2), "leftpad_k": numbers(1, 1)}
    found = explain_flash_attn_func(Q, K, V, **used)
    problem = found.choice.problem
    assert (problem.batch, problem.tokens_q, problem.tokens_kv, problem.varlen) == (6, 12, 12, True)
    assert any("packed sequences, 3 for each of the caller's" in note for note in found.notes)
    flash_attn_func(Q, K, V, **used)
    flat = tuple(t.flatten(0, 1)[:6] for t in (Q, K, V))
    found = explain_flash_attn_varlen_func(*flat, STARTS, STARTS, 4, 4, **used)
    assert found.choice.problem.batch == 6


@pytest.mark.parametrize(
    ("used", "error", "says"),
    [
        ({"seqused_k": numbers(3)}, ProblemError, r"seqused_k has shape \(1,\); give it \(2,\)"),
        ({"seqused_q": torch.ones(2)}, TypeError, "seqused_q is torch.float32; pass int32 or int64"),
        ({"leftpad_k": [0, 1]}, TypeError, "leftpad_k is a list"),
        ({"seqused_q": numbers(3, 7)}, ProblemError, r"seqused_q is \[3, 7\]; each must be from 0 to"),
        ({"seqused_k": numbers(-1, 3)}, ProblemError, r"seqused_k is \[-1, 3\]"),
        ({"leftpad_k": numbers(0, 7)}, ProblemError, r"leftpad_k is \[0, 7\]"),
        ({"seqused_k": numbers(3, 2).to("meta")}, ProblemError, "seqused_k is on meta and q on cpu"),
    ],
)
def test_numbers_that_make_no_sense_are_named(used, error, says):
    with pytest.raises(error, match=says):
        flash_attn_func(Q, K, V, **used)


@pytest.mark.parametrize(
    "wrong",
    [
        {"seqused_k": numbers(3)},
        {"seqused_q": torch.ones(2)},
        {"leftpad_k": numbers(3, 2).to("meta")},
        {"seqused_k": numbers(3, 2), "sinks": torch.ones(3)},
        {"seqused_k": numbers(3, 2), "alibi_slopes": torch.ones(2, 2, 2)},
    ],
)
def test_where_kernels_read_the_numbers_what_is_wrong_is_said_in_the_same_words(wrong):
    """On a GPU a call is judged once, with the numbers as operands of the kernel."""
    names = ("alibi_slopes", "sinks", "seqused_q", "seqused_k", "leftpad_k")
    slopes, sinks, *rows = (wrong.get(name) for name in names)
    extras, options = extras_of(slopes, sinks, rows, {}), options_of(None, True, None, None, {})
    tensors = [facts_of(each) for each in (Q, K, V)]
    said = []
    for judge_by, beside in (
        (judge._judged, (judge._facts_of(extras.operands), options, judge._facts_of(extras[1:]))),
        (judge._ranged, (judge._facts_of(extras.ranged()), options, "")),
    ):
        with pytest.raises((ProblemError, TypeError)) as error:
            judge_by(FLASH, *tensors, *beside)
        said.append((type(error.value), str(error.value)))
    assert said[0] == said[1]
