"""seqused_q, seqused_k and leftpad_k on CUDA tensors: by tuned kernels, in place, without waiting for the device."""

import warnings
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings

from attention import FallbackWarning, explain_flash_attn_func, flash_attn_func, flash_attn_varlen_func
from tests.cpu.used_cases import oracle, places, used_cases

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.filterwarnings("default"),
    pytest.mark.filterwarnings("ignore::attention.errors.FallbackWarning"),
]
DEVICE = "cuda"
TOLERANCE = {"float32": 2e-4, "float16": 8e-3, "bfloat16": 5e-2}


def numbers(*values: int) -> torch.Tensor:
    return torch.tensor(values, dtype=torch.int32, device=DEVICE)


@settings(max_examples=100, deadline=None, derandomize=True)
@given(drawn=used_cases(dtypes=("float16", "bfloat16", "float32"), longest=300, widest=256))
def test_what_is_used_is_attended_to_and_nothing_else_is_read(drawn: Any) -> None:
    case, used = drawn
    clean = case.tensors(DEVICE)
    q, k, v = (torch.full_like(each, torch.nan) for each in clean[:3])
    for rows, keys in places(case, used):
        q[rows], k[keys], v[keys] = clean[0][rows], clean[1][keys], clean[2][keys]
    inputs = [None if each is None else each.detach().requires_grad_() for each in (q, k, v, *clean[3:])]
    on_gpu = {name: each.to(DEVICE) for name, each in used.items()}
    with torch.no_grad():
        out, lse = case.call(*inputs, **on_gpu)
    expected, expected_lse = oracle(case, used, *clean)
    atol = TOLERANCE[case.dtype]
    np.testing.assert_allclose(out.double().cpu().numpy(), expected, rtol=0, atol=atol)
    np.testing.assert_allclose(lse.double().cpu().numpy(), expected_lse, rtol=0, atol=atol)
    out, lse = case.call(*inputs, **on_gpu)
    wanted = [each for each in inputs if each is not None]
    grads = torch.autograd.grad((out, lse), wanted, (torch.ones_like(out), torch.ones_like(lse)))
    assert all(bool(grad.isfinite().all()) for grad in grads)


def test_a_captured_graph_follows_the_numbers() -> None:
    """A growing cache: keys are used one by one, and nothing is captured, chosen or compiled again."""
    q, k, v = (torch.randn(2, rows, 4, 128, device=DEVICE, dtype=torch.bfloat16) for rows in (1, 512, 512))
    used = numbers(1, 100)

    def call() -> Any:
        return flash_attn_func(q, k, v, seqused_k=used, causal=True, return_lse=True)

    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        call()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        out, lse = call()
    for count in (1, 37, 411):
        used.copy_(numbers(count, count + 100))
        graph.replay()
        for at, keys in enumerate((count, count + 100)):
            alone, alone_lse = flash_attn_func(
                q[at : at + 1], k[at : at + 1, :keys], v[at : at + 1, :keys], return_lse=True
            )
            torch.testing.assert_close(out[at : at + 1], alone, rtol=0, atol=2e-2)
            torch.testing.assert_close(lse[at : at + 1], alone_lse, rtol=0, atol=1e-3)


def test_a_tuned_kernel_serves_where_one_serves_packed_sequences() -> None:
    q, k, v = (torch.randn(2, 256, 4, 128, device=DEVICE, dtype=torch.bfloat16) for _ in range(3))
    used = {"seqused_q": numbers(200, 256), "seqused_k": numbers(130, 255), "leftpad_k": numbers(3, 0)}
    choice = explain_flash_attn_func(q, k, v, **used, causal=True, only="smscope").choice
    with warnings.catch_warnings():
        warnings.simplefilter("error", FallbackWarning)
        found = flash_attn_func(q, k, v, **used, causal=True, strict=True, only="smscope")
    expected = flash_attn_func(q[:1, :200], k[:1, 3:130], v[:1, 3:130], causal=True)
    torch.testing.assert_close(found[:1, :200], expected, rtol=0, atol=2e-2)
    assert choice.pick.owner == "smscope" and bool(found[0, 200:].eq(0).all())


def test_what_is_not_used_has_no_gradient_however_long_it_is() -> None:
    """max_seqlen covers what is used, and the fused backward writes no more rows than that."""
    q, k, v = (torch.randn(3000, 4, 128, device=DEVICE, dtype=torch.bfloat16).requires_grad_() for _ in range(3))
    starts = numbers(0, 1000, 3000)
    used = {"seqused_q": numbers(100, 64), "seqused_k": numbers(128, 100), "leftpad_k": numbers(5, 0)}
    out = flash_attn_varlen_func(q, k, v, starts, starts, 100, 128, causal=True, **used)
    assert isinstance(out, torch.Tensor)
    grads = torch.autograd.grad(out.float().square().sum(), (q, k, v))
    alone = [
        t[begin:end].detach().requires_grad_()
        for t, (begin, end) in zip((q, k, v), ((0, 100), (5, 128), (5, 128)), strict=True)
    ]
    expected = flash_attn_func(*(t[None] for t in alone), causal=True)
    assert isinstance(expected, torch.Tensor)
    wanted = torch.autograd.grad(expected.float().square().sum(), alone)
    for grad, other, begin in zip(grads, wanted, (0, 5, 5), strict=True):
        torch.testing.assert_close(grad[begin : begin + len(other)], other, rtol=5e-2, atol=5e-2)
        kept = torch.zeros(len(grad), dtype=torch.bool, device=DEVICE)
        kept[begin : begin + len(other)] = True
        kept[1000:1100] = True
        assert bool(grad[~kept].eq(0).all())


def test_lengths_of_other_kinds_give_the_same() -> None:
    q, k, v = (torch.randn(6, 2, 64, device=DEVICE, dtype=torch.float16) for _ in range(3))
    starts = numbers(0, 4, 6)
    expected = flash_attn_varlen_func(q, k, v, starts, starts, 4, 4, causal=True)
    for longest in (None, torch.tensor(4), torch.tensor(4, device=DEVICE), np.int64(4)):
        found = flash_attn_varlen_func(q, k, v, starts.long(), starts, longest, longest, causal=1)  # type: ignore[arg-type]
        torch.testing.assert_close(found, expected, rtol=0, atol=0)
