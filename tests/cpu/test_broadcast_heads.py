"""Batches and heads that torch would broadcast: a kernel meets them spread out, or it would read past their end."""

import re

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from attention import sdpa
from attention.frontends.route import route_of

F = torch.nn.functional.scaled_dot_product_attention

pytestmark = pytest.mark.usefixtures("host_machine")


def tensors(*leading, rows=16, dim=8, dtype=torch.float32):
    generator = torch.Generator().manual_seed(0)
    return [torch.randn(*each, rows, dim, generator=generator).to(dtype) for each in leading]


@pytest.mark.parametrize("only", [None, "smscope"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16])
@pytest.mark.parametrize(
    "leading",
    [((3, 3), (3, 3), (3, 1)), ((3, 3), (3, 1), (3, 3)), ((3, 3), (3, 1), (3, 1)), ((3, 1), (3, 3), (3, 1))],
    ids=str,
)
def test_heads_of_one_are_those_of_all(leading, dtype, only):
    q, k, v = tensors(*leading, rows=64, dtype=dtype)
    expected = F(q.double(), k.double(), v.double()).to(dtype)
    torch.testing.assert_close(
        sdpa(q, k, v, only=only), expected, rtol=0, atol=5e-6 if dtype is torch.float32 else 2e-3
    )


def test_a_gradient_sums_over_the_heads_that_share_a_value():
    q, k, v = tensors((2, 4), (2, 4), (2, 1))
    v.requires_grad_()
    wanted = torch.autograd.grad(F(q, k, v).square().sum(), v)
    found = torch.autograd.grad(sdpa(q, k, v, only="smscope").square().sum(), v)
    torch.testing.assert_close(found, wanted, rtol=1e-5, atol=1e-5)


@settings(deadline=None, max_examples=150)
@given(
    sizes=st.lists(st.tuples(st.sampled_from([1, 2]), st.sampled_from([1, 2, 4])), min_size=3, max_size=3),
    enable_gqa=st.booleans(),
)
def test_what_is_not_spread_out_has_the_sizes_that_a_kernel_reads(sizes, enable_gqa):
    q, k, v = tensors(*sizes)
    try:
        route = route_of(q, k, v, None, 0.0, False, False, None, enable_gqa, "smscope")
    except RuntimeError:
        return
    assert route.fold or (k.shape == v.shape and q.shape[0] == k.shape[0] and q.shape[1] % k.shape[1] == 0)
    assert route.fold or enable_gqa or q.shape[1] == k.shape[1]


@pytest.mark.parametrize(
    ("leading", "mask"),
    [(((0, 3),) * 3, (0, 1, 1, 16)), (((2, 0, 3),) * 3, (1, 1, 1, 16, 16)), (((0, 3),) * 3, (16, 16))],
)
def test_an_empty_batch_has_a_mask_as_any_other(leading, mask):
    q, k, v = tensors(*leading)
    seen = torch.ones(mask, dtype=torch.bool)
    assert sdpa(q, k, v, seen).shape == F(q, k, v, seen).shape


@pytest.mark.parametrize("leading", [((12,), (3,), (3,)), ((2, 4), (2, 2), (2, 2))])
def test_where_nothing_is_computed_heads_may_differ_if_torch_lets_them(leading):
    q, k, v = tensors(*leading)
    q = q[..., :0, :]
    try:
        shape = F(q, k, v).shape
    except RuntimeError as error:  # torch 2.11
        with pytest.raises(RuntimeError, match=re.escape(str(error))):
            sdpa(q, k, v)
    else:
        assert sdpa(q, k, v).shape == shape == q.shape


@pytest.mark.parametrize("scale", [0.0, -0.5])
def test_a_scale_that_torch_computes_wrong_is_right_with_gradients_too(scale):
    q, k, v = (each.requires_grad_() for each in tensors((2, 2), (2, 2), (2, 2)))
    scores = (scale * q.double() @ k.double().mT).masked_fill(torch.ones(16, 16, dtype=torch.bool).triu(1), -torch.inf)
    expected = (scores.softmax(-1) @ v.double()).float()
    found = sdpa(q, k, v, is_causal=True, scale=scale)
    torch.testing.assert_close(found, expected, rtol=0, atol=5e-6)
    gradients = (torch.autograd.grad(each.square().sum(), (q, k, v)) for each in (found, expected))
    torch.testing.assert_close(*gradients, rtol=1e-4, atol=2e-5)
