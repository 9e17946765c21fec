"""Gradients of gradients, of lse alone, and of nothing: what autograd may ask of the operator."""

import pytest
import torch

from attention import flash_attn_func, sdpa
from attention.oracle.reference import attention as oracle

pytestmark = pytest.mark.usefixtures("host_machine")


def inputs(*shape: int, count: int = 3) -> list[torch.Tensor]:
    generator = torch.Generator().manual_seed(1)
    return [torch.randn(shape, generator=generator, dtype=torch.float64).requires_grad_() for _ in range(count)]


def test_the_second_derivative_is_right_and_warns_of_nothing():
    q, k, v = inputs(1, 2, 5, 4)
    assert torch.autograd.gradgradcheck(lambda *t: sdpa(*t, is_causal=True, only="smscope"), (q, k, v))


def test_a_gradient_penalty_reaches_the_inputs():
    tensors = inputs(1, 5, 2, 4)
    (first,) = torch.autograd.grad(flash_attn_func(*tensors, causal=True).square().sum(), tensors[0], create_graph=True)
    (second,) = torch.autograd.grad(first.square().sum(), tensors[1])
    q, k, v = (t.detach().transpose(1, 2).requires_grad_() for t in tensors)
    with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH):  # the one that has a second derivative
        theirs = torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
    (first,) = torch.autograd.grad(theirs.square().sum(), q, create_graph=True)
    (wanted,) = torch.autograd.grad(first.square().sum(), k)
    torch.testing.assert_close(second, wanted.transpose(1, 2))


def test_lse_alone_has_a_gradient():
    q, k, v = inputs(1, 5, 2, 4)
    _, lse = flash_attn_func(q, k, v, return_lse=True)
    d_q, d_v = torch.autograd.grad(lse.sum(), (q, v))
    scores = torch.einsum("bihd,bjhd->bhij", q.detach(), k.detach()) / 2
    wanted = torch.einsum("bhij,bjhd->bihd", scores.softmax(-1), k.detach()) / 2
    torch.testing.assert_close(d_q, wanted)
    assert not d_v.any()


def test_out_alone_asks_for_no_gradient_of_lse(monkeypatch):
    from attention.kernels.torch.composed import gradient

    seen = []
    real = gradient.backward
    monkeypatch.setattr(gradient, "backward", lambda *a, **k: (seen.append(a[1]), real(*a, **k))[1])
    q, k, v = inputs(1, 5, 2, 4)
    flash_attn_func(q, k, v, softmax_scale=-0.5).sum().backward()
    assert seen == [None]


def test_with_gradients_the_cpu_is_torchs_from_end_to_end():
    q, k, v = (t.detach().float().requires_grad_() for t in inputs(1, 2, 64, 16))
    out = sdpa(q, k, v, is_causal=True)
    wanted = torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
    assert type(out.grad_fn) is type(wanted.grad_fn)


def test_the_oracle_agrees():
    q, k, v = (t.detach() for t in inputs(1, 2, 5, 4))
    out, _ = oracle(q.numpy(), k.numpy(), v.numpy(), scale=0.5)
    torch.testing.assert_close(sdpa(q, k, v), torch.from_numpy(out))
