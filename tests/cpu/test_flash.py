import math
import threading
import warnings

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.library import opcheck

import attention.op.operators  # noqa: F401  its operators are called by name
from attention import (
    ArgumentError,
    FallbackWarning,
    ProblemError,
    UnsupportedError,
    flash_attn_func,
    flash_attn_varlen_func,
    sdpa,
)
from attention.call import TENSORS, Call, Extras, Options
from attention.features import OPERANDS
from attention.kernels.torch.composed import pieces
from attention.oracle import reference
from tests.cpu.attention_features import Case, cases
from tests.cpu.gradient_bounds import close
from tests.tensors import random

pytestmark = [pytest.mark.usefixtures("host_machine"), pytest.mark.filterwarnings("ignore::attention.FallbackWarning")]
CLOSE = close((2, 4, 20, 8), (2, 2, 20, 8), enable_gqa=True)
EVERYTHING = Case(
    seed=3,
    lengths=((5, 9), (7, 0), (6, 3)),
    packed=True,
    heads_kv=2,
    group=2,
    dim=4,
    dim_v=3,
    dtype="float64",
    causal=True,
    window=(4, 2),
    softcap=2.0,
    alibi="batch",
    sinks=True,
)


@settings(max_examples=300, deadline=None, derandomize=True)
@given(case=cases())
def test_every_feature_alone_and_with_others_agrees_with_the_oracle(case):
    tensors = case.tensors()
    out, lse = case.call(*tensors)
    assert out.dtype == tensors[0].dtype and out.shape == (*tensors[0].shape[:-1], case.dim_v)
    case.hold(out, lse, tensors)


@settings(max_examples=60, deadline=None, derandomize=True)
@given(case=cases(dtypes=("float32", "float64")))
def test_pieces_of_any_size_give_the_same(case):
    tensors = case.tensors()
    before = pieces.PIECE_SCORES
    try:
        pieces.PIECE_SCORES = 37
        case.hold(*case.call(*tensors, only="torch_math"), tensors)
    finally:
        pieces.PIECE_SCORES = before


@settings(max_examples=40, deadline=None, derandomize=True)
@given(case=cases(dtypes=("float64",), longest=7, widest=4), small=st.booleans())
def test_gradients_of_every_input_are_those_of_finite_differences(case, small):
    q, k, v, slopes, sinks = (None if t is None else t.double().contiguous() for t in case.tensors())
    given_ = [t.requires_grad_() for t in (q, k, v, slopes, sinks) if t is not None and t.numel()]

    def forward(*_):
        out, lse = case.call(q, k, v, slopes, sinks)
        return out, lse.masked_fill(lse == -torch.inf, 0.0)

    before = pieces.PIECE_SCORES
    try:
        pieces.PIECE_SCORES = 11 if small else before
        assert not given_ or torch.autograd.gradcheck(forward, given_, eps=1e-6, atol=1e-6, fast_mode=True)
    finally:
        pieces.PIECE_SCORES = before


def test_the_gradient_of_a_float_mask_is_that_of_finite_differences():
    q, k, v = random((2, 4, 5, 3), (2, 2, 6, 3), (2, 2, 6, 3), dtype=torch.float64, grad=True)
    for shape in ((2, 4, 5, 6), (1, 4, 1, 6), (2, 1, 5, 1)):
        (mask,) = random(shape, dtype=torch.float64, seed=1, grad=True)

        def forward(q, k, v, mask):
            return torch.ops.smscope.attention_forward(q, k, v, mask=mask, only="torch_math")

        assert torch.autograd.gradcheck(forward, (q, k, v, mask), eps=1e-6, atol=1e-6, fast_mode=True)


def operator_arguments(case, grad):
    *tensors, slopes, sinks = case.tensors()
    starts = (case.starts(side) for side in (0, 1)) if case.packed else (None, None)
    tensors = [t.transpose(0, 1)[None] if case.packed else t.transpose(1, 2) for t in tensors]
    tensors += [slopes.double(), sinks.double()]
    q, k, v, slopes, sinks = (t.detach().requires_grad_(grad) for t in tensors)
    longest = (7, 9) if case.packed else (0, 0)
    starts_q, starts_k = starts
    extras = Extras(alibi=slopes, sinks=sinks, cu_seqlens_q=starts_q, cu_seqlens_k=starts_k)
    band = {"causal": True, "bottom_right": True, "window_left": 4, "window_right": 2}
    return Call(q, k, v, extras, Options(*longest, softcap=2.0, **band)).arguments()


@pytest.mark.parametrize("grad", [False, True])
@pytest.mark.parametrize("packed", [False, True])
def test_opcheck_passes_with_every_feature(packed, grad):
    changes = {} if packed else {"packed": False, "lengths": ((5, 9),) * 2}
    case = Case(**(EVERYTHING.__dict__ | changes))
    found = opcheck(torch.ops.smscope.attention_forward.default, operator_arguments(case, grad))
    assert set(found.values()) == {"SUCCESS"}


def test_opcheck_passes_for_the_backward_of_every_feature():
    arguments = operator_arguments(EVERYTHING, False)
    out, lse = torch.ops.smscope.attention_forward(*arguments)
    given_ = (
        torch.ones_like(out),
        torch.zeros_like(lse),
        *arguments[:3],
        out,
        lse,
        [name in ("alibi", "sinks") for name in TENSORS[: len(OPERANDS)]],
        *arguments[3:],
    )
    assert set(opcheck(torch.ops.smscope.attention_backward.default, given_).values()) == {"SUCCESS"}


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("dynamic", [False, True])
def test_a_compiled_graph_has_no_break_and_gives_the_same(packed, dynamic):
    torch.compiler.reset()
    compiled = torch.compile(Case.call, fullgraph=True, backend="aot_eager", dynamic=dynamic)
    for rows in (9, 14):
        lengths = ((rows, 9), (3, 5), (rows, 2)) if packed else ((rows, 20),) * 2
        case = Case(**(EVERYTHING.__dict__ | {"packed": packed, "lengths": lengths, "dtype": "float32"}))
        tensors = [t.requires_grad_() for t in case.tensors()]
        eager = case.call(*tensors)
        graph = compiled(case, *tensors, starts=tuple(case.starts(side) for side in (0, 1)))
        for one, other in zip(graph, eager, strict=True):
            torch.testing.assert_close(one, other, **CLOSE)
        sums = (sum(each.sum() for each in results) for results in (graph, eager))
        for one, other in zip(*(torch.autograd.grad(each, tensors) for each in sums), strict=True):
            torch.testing.assert_close(one, other, **CLOSE)


def test_four_threads_at_the_first_call_agree():
    case = Case(**(EVERYTHING.__dict__ | {"dtype": "float32"}))
    tensors = case.tensors()
    found = []
    start = threading.Barrier(4)

    def call():
        start.wait()
        found.append(case.call(*tensors))

    threads = [threading.Thread(target=call) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 4
    for out, lse in found:
        assert torch.equal(out, found[0][0]) and torch.equal(lse, found[0][1])


def test_causality_is_bottom_right_and_windows_reach_as_far_as_they_say():
    q, k, v = random((1, 2, 1, 4), (1, 5, 1, 4), (1, 5, 1, 4))
    keys = torch.arange(5)
    for options, seen in (
        ({"causal": True}, ([0, 1, 2, 3], [0, 1, 2, 3, 4])),
        ({"window_size": (1, 0)}, ([2, 3], [3, 4])),
        ({"window_size": (0, 1)}, ([3, 4], [4])),
        ({"causal": True, "window_size": (2, 3)}, ([1, 2, 3], [2, 3, 4])),
    ):
        mask = torch.stack([torch.isin(keys, torch.tensor(row)) for row in seen])
        expected = torch.nn.functional.scaled_dot_product_attention(*(t.transpose(1, 2) for t in (q, k, v)), mask)
        torch.testing.assert_close(flash_attn_func(q, k, v, **options), expected.transpose(1, 2), **CLOSE)


def test_out_is_contiguous_as_flash_attns_is():
    for dim_v in (8, 5):
        q, k, v = random((2, 6, 4, 8), (2, 6, 2, 8), (2, 6, 2, dim_v))
        assert flash_attn_func(q, k, v).is_contiguous()


def test_a_row_that_sees_nothing_gives_zero_and_minus_infinity_or_its_sink():
    q, k, v, sinks = random((1, 5, 2, 4), (1, 2, 2, 4), (1, 2, 2, 4), (2,))
    out, lse = flash_attn_func(q, k, v, causal=True, return_lse=True)
    assert out[:, :3].eq(0).all() and lse[..., :3].eq(-torch.inf).all() and lse[..., 3:].isfinite().all()
    out, lse = flash_attn_func(q, k, v, causal=True, sinks=sinks, return_lse=True)
    assert out[:, :3].eq(0).all() and torch.equal(lse[0, :, 0], sinks)
    out, lse = flash_attn_func(q, k[:, :0], v[:, :0], return_lse=True)
    assert out.shape == q.shape and out.eq(0).all() and lse.eq(-torch.inf).all()


def test_rows_of_no_sequence_give_zero_and_minus_infinity():
    q, k, v = random((6, 2, 4), (6, 2, 4), (6, 2, 4), grad=True)
    starts = torch.tensor([0, 2, 4], dtype=torch.int32)
    out, lse = flash_attn_varlen_func(q, k, v, starts, starts, 2, 2, return_lse=True)
    assert out[4:].eq(0).all() and lse[:, 4:].eq(-torch.inf).all() and out[:4].ne(0).all()
    assert all(grad[4:].eq(0).all() for grad in torch.autograd.grad(out.sum(), (q, k, v)))


def test_masks_of_sdpa_broadcast_and_their_gradients_are_torchs():
    q, k, v = random((2, 3, 4, 9, 8), (2, 3, 2, 7, 8), (2, 3, 2, 7, 8), grad=True)
    hidden = random((9, 7), (4, 1, 7), (3, 1, 9, 7), (2, 1, 4, 1, 7), (1, 7), seed=4)
    masks = [values > 0.3 for values in hidden] + [values.requires_grad_() for values in hidden]
    for mask in masks:
        results = [
            function(q, k, v, attn_mask=mask, enable_gqa=True)
            for function in (sdpa, torch.nn.functional.scaled_dot_product_attention)
        ]
        torch.testing.assert_close(*results, **CLOSE)
        wanted = [q, k, v] + ([mask] if mask.requires_grad else [])
        for mine, theirs in zip(*(torch.autograd.grad(out.sum(), wanted) for out in results), strict=True):
            torch.testing.assert_close(mine, theirs, **CLOSE)


@pytest.mark.parametrize("only", ["torch_sdpa", "torch_math"])
def test_the_operator_with_a_mask_agrees_with_the_oracle(only):
    q, k, v = random((2, 4, 9, 8), (2, 2, 7, 8), (2, 2, 7, 8))
    seen = random((1, 4, 9, 7))[0] > 0
    seen[0, 1, 3] = False
    for mask in (seen, torch.zeros(seen.shape).masked_fill(~seen, -torch.inf)):
        out, lse = torch.ops.smscope.attention_forward(q, k, v, mask=mask, only=only)
        oracle, oracle_lse = reference.attention(q, k, v, mask=mask.numpy())
        np.testing.assert_allclose(out, oracle, **CLOSE)
        np.testing.assert_allclose(lse, oracle_lse, **CLOSE)
        assert out[:, 1, 3].eq(0).all() and lse[:, 1, 3].eq(-torch.inf).all()


def test_one_warning_per_distinct_reason_and_strict_raises():
    q, k, v, sinks = random((1, 5, 2, 4), (1, 7, 2, 4), (1, 7, 2, 4), (2,))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for _ in range(3):
            flash_attn_func(q, k, v, causal=True)
            flash_attn_func(q, k, v, softcap=3.0)
            flash_attn_func(q, k, v, sinks=sinks)
    said = [str(each.message) for each in caught if each.category is FallbackWarning]
    assert len(said) == 2 and "softcap" in said[0] and "attention sinks" in said[1]
    with pytest.raises(UnsupportedError, match="softcap"):
        flash_attn_func(q, k, v, softcap=3.0, strict=True)
    with pytest.raises(UnsupportedError, match="softcap"):
        flash_attn_func(q, k, v, softcap=3.0, only="smscope")
    torch.testing.assert_close(flash_attn_func(q, k, v, strict=True), flash_attn_func(q, k, v, only="torch"), **CLOSE)


GOOD = [(1, 6, 4, 8), (1, 6, 2, 8), (1, 6, 2, 8)]


@pytest.mark.parametrize(
    ("shapes", "options", "error", "says"),
    [
        (GOOD, {"dropout_p": 0.1}, UnsupportedError, "dropout_p=0.1 is not supported"),
        (GOOD, {"dropout_p": 2.0}, ProblemError, "probability"),
        (GOOD, {"dropout_p": "much"}, TypeError, "dropout_p is a str"),
        (GOOD, {"causal": "yes"}, TypeError, "causal is a str"),
        (GOOD, {"causal": [True]}, TypeError, "causal is a list"),
        (GOOD, {"window_size": 4}, TypeError, "window_size is 4"),
        (GOOD, {"window_size": (1, 2, 3)}, TypeError, "two whole numbers"),
        (GOOD, {"window_size": (-2, 0)}, ProblemError, "-1 for all"),
        (GOOD, {"window_size": (1.5, 0)}, ProblemError, "two whole numbers"),
        (GOOD, {"softcap": -1.0}, ProblemError, "softcap is -1.0"),
        (GOOD, {"softcap": math.nan}, ProblemError, "finite"),
        (GOOD, {"softmax_scale": math.inf}, ProblemError, "scale is inf"),
        (GOOD, {"alibi_slopes": torch.ones(3)}, ProblemError, r"alibi_slopes has shape \(3,\); give it \(4,\) or"),
        (GOOD, {"alibi_slopes": torch.ones(4, dtype=torch.int32)}, TypeError, "pass float16 or"),
        (GOOD, {"sinks": torch.ones(2)}, ProblemError, r"sinks has shape \(2,\); give it \(4,\)"),
        (GOOD, {"sinks": [0.0] * 4}, TypeError, "sinks is a list"),
        (GOOD, {"only": "nobody"}, ProblemError, "names no kernel"),
        (GOOD, {"is_causal": True}, TypeError, "unexpected keyword argument 'is_causal'"),
        ([(6, 4, 8)] * 3, {}, ProblemError, r"layout \(batch, sequence, heads, head_dim\)"),
        ([(1, 6, 4, 8), (1, 6, 3, 8), (1, 6, 3, 8)], {}, ProblemError, "whole number"),
        ([(1, 6, 4, 8), (2, 6, 2, 8), (2, 6, 2, 8)], {}, ProblemError, "batches of 1, 2, 2"),
        ([(1, 6, 4, 8), (1, 6, 2, 9), (1, 6, 2, 8)], {}, ProblemError, "head_dim 8 and k 9"),
        ([(1, 6, 4, 8), (1, 6, 2, 8), (1, 5, 2, 8)], {}, ProblemError, "same heads and sequence"),
        ([(1, 6, 4, 0), (1, 6, 2, 0), (1, 6, 2, 8)], {}, ProblemError, "head_dim is 0"),
    ],
)
def test_a_call_that_makes_no_sense_says_what_is_wrong(shapes, options, error, says):
    with pytest.raises(error, match=says):
        flash_attn_func(*random(*shapes), **options)


@pytest.mark.parametrize(
    ("changes", "error", "says"),
    [
        ({"cu_seqlens_q": torch.tensor([0.0, 4.0, 6.0])}, TypeError, "pass int32"),
        ({"cu_seqlens_q": torch.tensor([0, 4, 9])}, ProblemError, "the 6 rows of q"),
        ({"cu_seqlens_q": torch.tensor([0, 4, 9], dtype=torch.int32)}, ProblemError, "the 6 rows of q"),
        ({"cu_seqlens_q": torch.tensor([0, 4, 2], dtype=torch.int32)}, ProblemError, "must rise"),
        ({"cu_seqlens_q": torch.tensor([0, 6], dtype=torch.int32)}, ProblemError, "1 sequences and cu_seqlens_k 2"),
        ({"cu_seqlens_k": torch.tensor([[0, 6]], dtype=torch.int32)}, ProblemError, "cu_seqlens_k has shape"),
        ({"cu_seqlens_k": [0, 6]}, TypeError, "cu_seqlens_k is a list"),
        ({"max_seqlen_q": 1}, ProblemError, "max_seqlen_q is 1, and one sequence has 4"),
        ({"max_seqlen_k": 4.0}, TypeError, "whole number"),
        ({"max_seqlen_k": True}, TypeError, "whole number"),
        ({"max_seqlen_k": torch.tensor(4.0)}, TypeError, "whole number"),
        ({"max_seqlen_k": torch.tensor([4, 4])}, TypeError, r"of shape \(2,\)"),
        ({"max_seqlen_k": -1}, ProblemError, "max_seqlen_k is -1"),
    ],
)
def test_lengths_that_make_no_sense_are_named(changes, error, says):
    starts = torch.tensor([0, 4, 6], dtype=torch.int32)
    lengths = {"cu_seqlens_q": starts, "cu_seqlens_k": starts, "max_seqlen_q": 4, "max_seqlen_k": 4} | changes
    with pytest.raises(error, match=says):
        flash_attn_varlen_func(*random(*[(6, 2, 4)] * 3), **lengths)


def test_a_missing_argument_is_pythons_own_error():
    q, k, v = random(*GOOD)
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'v'"):
        flash_attn_func(q, k)
    with pytest.raises(TypeError, match="max_seqlen_k"):
        flash_attn_varlen_func(q, k, v, q, q, 4)
    with pytest.raises(ArgumentError, match="v is a NoneType"):
        flash_attn_func(q, k, None)
