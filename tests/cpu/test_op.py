import math
import threading
import warnings

import numpy
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.library import opcheck

import attention.op.operators  # noqa: F401  its operators are called by name
from attention import ArgumentError, FallbackWarning, ProblemError, UnsupportedError, sdpa
from attention.call import Call, Manner, Options
from attention.choose.machine import MachineProfile
from attention.features import OPERANDS
from attention.kernels.torch.composed import pieces
from attention.op import plan
from tests.cpu.attention_profiles import host_profile
from tests.cpu.gradient_bounds import bounds, close
from tests.tensors import assert_same_gradients, random

F = torch.nn.functional.scaled_dot_product_attention
CLOSE = close((2, 4, 50, 16), (2, 2, 50, 16), enable_gqa=True)


pytestmark = pytest.mark.usefixtures("host_machine")


@pytest.mark.parametrize("only", ["smscope", "torch", None])
@pytest.mark.parametrize(
    ("query", "key", "options"),
    [
        ((2, 4, 33, 16), (2, 4, 40, 16), {}),
        ((2, 4, 33, 16), (2, 2, 40, 16), {"enable_gqa": True, "is_causal": True}),
        ((4, 33, 16), (4, 40, 16), {"is_causal": True, "scale": 0.3}),
        ((33, 16), (40, 16), {}),
        ((2, 3, 4, 33, 16), (2, 3, 4, 40, 16), {"scale": -0.25}),
        ((2, 4, 33, 16), (1, 1, 40, 16), {}),
        ((2, 4, 33, 16), (4, 40, 16), {}),
        ((1, 1, 1, 1), (1, 1, 1, 1), {"is_causal": True}),
    ],
)
def test_sdpa_takes_and_gives_what_torch_does(only, query, key, options):
    q, k, v = random(query, key, key, grad=True)
    ours, theirs = sdpa(q, k, v, **options, only=only), F(q, k, v, **options)
    assert ours.shape == theirs.shape and ours.stride() == theirs.stride()
    (seed,) = random(theirs.shape, seed=1)
    exact = [each.detach().double().requires_grad_() for each in (q, k, v)]
    expected = F(*exact, **options)
    found = (ours, *torch.autograd.grad(ours, (q, k, v), seed))
    wanted = (expected, *torch.autograd.grad(expected, exact, seed.double()))
    for mine, true, bound in zip(found, wanted, bounds(q, k, v, seed, **options), strict=True):
        assert mine.shape == true.shape and ((mine.double() - true).abs() <= bound).all()


def forward_op(q, k, v, causal=False, scale=None, only=""):
    """The operator itself, with no feature but those of torch's function."""
    return torch.ops.smscope.attention_forward(*arguments_of(q, k, v, causal, scale, only))


def arguments_of(q, k, v, causal=False, scale=None, only=""):
    return Call(q, k, v, options=Options(causal=causal, scale=scale), manner=Manner(only)).arguments()


def test_positional_arguments_have_torchs_order():
    q, k, v = random(*[(1, 2, 8, 4)] * 3)
    torch.testing.assert_close(
        sdpa(q, k, v, None, 0.0, True, scale=0.2), F(q, k, v, None, 0.0, True, scale=0.2), **CLOSE
    )


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64])
def test_other_dtypes_keep_their_dtype(dtype):
    q, k, v = random(*[(1, 2, 20, 24)] * 3, dtype=dtype)
    ours = sdpa(q, k, v, only="smscope")
    assert ours.dtype == dtype
    torch.testing.assert_close(ours, F(q, k, v), rtol=0, atol=2e-2 if dtype.itemsize == 2 else 1e-13)


@settings(max_examples=15, deadline=None, derandomize=True)
@given(
    seed=st.integers(0, 2**31),
    group=st.integers(1, 3),
    seq_q=st.integers(1, 9),
    seq_kv=st.integers(1, 9),
    dim=st.integers(1, 6),
    dim_v=st.integers(1, 6),
    causal=st.booleans(),
)
def test_gradients_of_out_and_lse_are_those_of_finite_differences(seed, group, seq_q, seq_kv, dim, dim_v, causal):
    shapes = ((1, 2 * group, seq_q, dim), (1, 2, seq_kv, dim), (1, 2, seq_kv, dim_v))
    inputs = random(*shapes, dtype=torch.float64, seed=seed, grad=True)

    def forward(q, k, v):
        return forward_op(q, k, v, causal, 0.7, "smscope")

    assert torch.autograd.gradcheck(forward, inputs, eps=1e-6, atol=1e-6, fast_mode=True)


def test_the_backward_in_blocks_is_the_backward_in_one(monkeypatch):
    q, k, v = random((2, 4, 50, 16), (2, 2, 30, 16), (2, 2, 30, 16), grad=True)
    whole = torch.autograd.grad(sdpa(q, k, v, is_causal=True, enable_gqa=True, only="smscope").sum(), (q, k, v))
    monkeypatch.setattr(pieces, "PIECE_SCORES", 2 * 30 * 7)
    parts = torch.autograd.grad(sdpa(q, k, v, is_causal=True, enable_gqa=True, only="smscope").sum(), (q, k, v))
    for one, other in zip(whole, parts, strict=True):
        torch.testing.assert_close(one, other, **CLOSE)


@pytest.mark.parametrize("only", ["smscope", "torch"])
@pytest.mark.parametrize("grad", [False, True])
@pytest.mark.parametrize("layout", ["contiguous", "permuted", "expanded"])
def test_opcheck_passes(only, grad, layout):
    if layout == "permuted":
        tensors = [t.transpose(1, 2) for t in random(*[(1, 20, 2, 8)] * 3)]
    elif layout == "expanded":
        tensors = [t.expand(2, 2, 20, 8) for t in random(*[(1, 1, 20, 8)] * 3)]
    else:
        tensors = random(*[(1, 2, 20, 8)] * 3)
    arguments = arguments_of(*(t.detach().requires_grad_(grad) for t in tensors), causal=True, only=only)
    found = opcheck(torch.ops.smscope.attention_forward.default, arguments)
    assert set(found.values()) == {"SUCCESS"}


def test_opcheck_passes_for_the_backward():
    q, k, v = random((1, 4, 20, 8), (1, 2, 30, 8), (1, 2, 30, 8))
    out, lse = forward_op(q, k, v)
    inputs = (torch.ones_like(out), torch.zeros_like(lse), q, k, v, out, lse)
    arguments = (*inputs, [False] * len(OPERANDS), *arguments_of(q, k, v)[3:])
    assert set(opcheck(torch.ops.smscope.attention_backward.default, arguments).values()) == {"SUCCESS"}


@pytest.mark.parametrize("dynamic", [False, True])
def test_a_compiled_graph_has_no_break_and_gives_the_same(dynamic):
    torch.compiler.reset()

    def model(q, k, v):
        return sdpa(2 * q, k, v, is_causal=True, enable_gqa=True) + 1

    compiled = torch.compile(model, fullgraph=True, backend="aot_eager", dynamic=dynamic)
    for rows in (20, 33, 47):
        inputs = random((1, 4, rows, 8), (1, 2, rows, 8), (1, 2, rows, 8), grad=True)
        eager, graph = model(*inputs), compiled(*inputs)
        torch.testing.assert_close(graph, eager, **CLOSE)
        assert_same_gradients(graph, eager, inputs, **CLOSE)


def test_a_fallback_inside_a_compiled_graph_warns_while_it_is_traced():
    torch.compiler.reset()
    q, k, v = random(*[(1, 2, 8, 4)] * 3)
    mask = torch.zeros(8, 8).masked_fill(torch.ones(8, 8, dtype=torch.bool).triu(1), -torch.inf)
    compiled = torch.compile(lambda *a: sdpa(*a, attn_mask=mask), fullgraph=True, backend="aot_eager")
    with pytest.warns(FallbackWarning, match="float mask"):
        out = compiled(q, k, v)
    torch.testing.assert_close(out, F(q, k, v, mask), **CLOSE)


def test_one_warning_per_reason_and_torch_serves():
    q, k, v = random(*[(1, 2, 8, 4)] * 3)
    wide = random(*[(1, 2, 64, 300)] * 3)  # a small call is torch's whoever could serve it
    large = random(*[(1, 8, 128, 64)] * 3)
    mask = torch.ones(128, 128, dtype=torch.bool).tril()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for _ in range(3):
            torch.testing.assert_close(sdpa(*large, attn_mask=mask), F(*large, mask), **CLOSE)
            assert sdpa(q, k, v, dropout_p=1.0).abs().sum() == 0
            torch.testing.assert_close(sdpa(*wide), F(*wide), **CLOSE)
    reasons = [str(warning.message) for warning in caught if warning.category is FallbackWarning]
    assert len(reasons) == 3
    for word in ("mask", "dropout", "256"):
        assert sum(word in reason for reason in reasons) == 1


@pytest.mark.parametrize(
    ("options", "dim", "says"),
    [({"dropout_p": 0.1}, 4, "dropout"), ({"attn_mask": torch.ones(8, 8)}, 4, "mask"), ({}, 300, "256")],
)
def test_strict_raises_where_torch_would_have_served(options, dim, says):
    q, k, v = random(*[(1, 2, 8, dim)] * 3)
    with pytest.raises(UnsupportedError, match=says):
        sdpa(q, k, v, **options, strict=True)
    with pytest.raises(UnsupportedError, match=says):
        sdpa(q, k, v, **options, only="smscope")


def test_strict_does_not_mind_that_torchs_kernel_is_predicted_faster(monkeypatch):
    fast_torch = MachineProfile(host_profile(matmul_f32_flops_per_s=5e12))
    monkeypatch.setattr(plan, "machine_profile", lambda _device: fast_torch)
    q, k, v = random(*[(1, 2, 64, 16)] * 3)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        torch.testing.assert_close(sdpa(q, k, v, strict=True), F(q, k, v), **CLOSE)


@pytest.mark.parametrize(
    ("shapes", "options", "says"),
    [
        ([(1, 4, 8, 4), (1, 2, 8, 4), (1, 2, 8, 4)], {}, "enable_gqa=True"),
        ([(1, 3, 8, 4), (1, 2, 8, 4), (1, 2, 8, 4)], {"enable_gqa": True}, "whole number"),
        ([(1, 2, 8, 4), (1, 2, 8, 5), (1, 2, 8, 5)], {}, "head_dim 4 and key 5"),
        ([(1, 2, 8, 0), (1, 2, 8, 0), (1, 2, 8, 4)], {}, "head_dim is 0"),
        ([(1, 2, 8, 4)] * 3, {"scale": math.nan}, "finite"),
        ([(1, 2, 8, 4)] * 3, {"only": "nobody"}, "names no kernel"),
        ([(1, 2, 8, 4)] * 3, {"attn_mask": torch.ones(8, 8), "is_causal": True}, "exclude each other"),
    ],
)
def test_inputs_that_make_no_sense_raise_one_sentence(shapes, options, says):
    with pytest.raises(ProblemError, match=says):
        sdpa(*random(*shapes), **options)


def test_integers_and_mixed_dtypes_are_refused():
    q, k, v = random(*[(1, 2, 8, 4)] * 3)
    with pytest.raises(ProblemError, match="int32"):
        sdpa(q.int(), k.int(), v.int())
    with pytest.raises(ProblemError, match="cast them to one dtype"):
        sdpa(q, k.half(), v)


@pytest.mark.parametrize("grad", [False, True])
@pytest.mark.parametrize(
    "shapes", [[(1, 2, 0, 4), (1, 2, 8, 4)], [(0, 2, 8, 4), (0, 2, 8, 4)], [(1, 2, 8, 4), (1, 2, 0, 4)]]
)
def test_tensors_without_elements_give_what_torch_gives(shapes, grad):
    q, k, v = random(shapes[0], shapes[1], shapes[1], grad=grad)
    ours = sdpa(q, k, v, strict=True)
    torch.testing.assert_close(ours, F(q, k, v))
    if grad:
        assert all(each.eq(0).all() for each in torch.autograd.grad(ours.sum(), (q, k, v)))


def test_autocast_casts_as_torch_does():
    q, k, v = random(*[(1, 2, 20, 16)] * 3, grad=True)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        ours, theirs = sdpa(q, k, v, only="smscope"), F(q, k, v)
    assert ours.dtype == theirs.dtype == torch.bfloat16
    torch.testing.assert_close(ours, theirs, rtol=0, atol=2e-2)
    assert all(grad.dtype == torch.float32 for grad in torch.autograd.grad(ours.sum(), (q, k, v)))


def test_meta_tensors_have_shape_and_no_work():
    q, k, v = (torch.empty(2, 4, 8, 16, device="meta") for _ in range(3))
    assert sdpa(q, k, v).shape == (2, 4, 8, 16)


def test_a_large_scale_of_threads_makes_the_same_plan():
    q, k, v = random(*[(1, 4, 100, 32)] * 3)
    expected, found = F(q, k, v), []
    threads = [threading.Thread(target=lambda: found.append(sdpa(q, k, v))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 4
    for out in found:
        torch.testing.assert_close(out, expected, **CLOSE)


@pytest.mark.parametrize("given", [numpy.zeros((1, 1, 2, 4), numpy.float32), [[0.0]], None])
def test_what_is_no_tensor_is_named_with_what_to_pass(given):
    (q,) = random((1, 1, 2, 4))
    with pytest.raises(ArgumentError, match=rf"key is a .*{type(given).__name__}; pass a torch.Tensor, .*as_tensor"):
        sdpa(q, given, q)


def test_a_refusal_names_the_sizes_of_the_call() -> None:
    (wide,) = random((1, 2, 65, 300))
    with pytest.raises(UnsupportedError, match="serves B=1 Hq=2 Hkv=2 Sq=65 Skv=65 D=300"):
        sdpa(wide, wide, wide, only="smscope")
