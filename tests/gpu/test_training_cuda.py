"""Gradients on a GPU: torch's fused backward on our out and lse, against float64 and against the slow path."""

import warnings
from typing import Any

import pytest
import torch

import attention
from attention import FallbackWarning, UnsupportedError, sdpa
from attention.forwarded import Wanted
from attention.kernels.torch.composed import gradient
from attention.op import backward

pytestmark = [pytest.mark.gpu, pytest.mark.filterwarnings("default")]

DEVICE = "cuda"
CUDNN, FLASH = "sm90a/backward/torch_cudnn", "sm80/backward/torch_flash"


@pytest.fixture(autouse=True)
def _every_reason_is_new(monkeypatch: pytest.MonkeyPatch) -> None:
    torch.manual_seed(0)
    monkeypatch.setattr(backward, "_announced", set())


@pytest.fixture
def slow_calls(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Grows by one with every gradient that takes the slow path."""
    calls: list[int] = []
    real = gradient.backward
    monkeypatch.setattr(gradient, "backward", lambda *a, **k: (calls.append(1), real(*a, **k))[1])
    return calls


def random(*shape: int, dtype: torch.dtype = torch.bfloat16) -> torch.Tensor:
    return torch.randn(shape).to(DEVICE, dtype).requires_grad_()


def float64_gradients(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, d_out: torch.Tensor, sinks: torch.Tensor | None, **options: Any
) -> list[torch.Tensor]:
    """By autograd through attention written out, (B, S, H, D), in float64."""
    wide = [each.detach().double().requires_grad_() for each in (q, k, v, *([] if sinks is None else [sinks]))]
    heads = [each.transpose(1, 2).repeat_interleave(q.shape[2] // k.shape[2], 1) for each in wide[1:3]]
    scores = wide[0].transpose(1, 2) @ heads[0].transpose(-1, -2) * q.shape[-1] ** -0.5
    i = torch.arange(q.shape[1], device=DEVICE)[:, None] + k.shape[1] - q.shape[1]
    j = torch.arange(k.shape[1], device=DEVICE)
    left = options.get("window", (-1, -1))[0]
    hidden = (j > i) if options.get("causal") else torch.zeros_like(j > i)
    hidden = hidden | (j < i - left) if left >= 0 else hidden
    scores = scores.masked_fill(hidden, -torch.inf)
    if sinks is not None:
        scores = torch.cat([scores, wide[3][:, None, None].expand(*scores.shape[:-1], 1)[: scores.shape[0]]], -1)
    weights = scores.softmax(-1)[..., : k.shape[1]].nan_to_num(0.0)
    out = (weights @ heads[1]).transpose(1, 2)
    return list(torch.autograd.grad(out, wide, d_out.double()))


def assert_near(found: list[torch.Tensor], wanted: list[torch.Tensor]) -> None:
    for got, want in zip(found, wanted, strict=True):
        assert torch.isfinite(got).all()
        # What is 0 by the formula (one key alone weighs 1) is a difference of rounded numbers.
        assert (got.double() - want).norm() <= 0.01 * want.norm() + 1e-4 * want.numel() ** 0.5


CALLS = [
    ({"causal": True}, (2, 384, 384, 8, 2, 128), CUDNN),
    ({}, (2, 256, 384, 4, 4, 64), CUDNN),
    ({"causal": True}, (2, 320, 320, 4, 4, 128), FLASH),  # 64 mod 128
    ({"causal": True}, (1, 200, 500, 8, 2, 128), FLASH),  # bottom-right
    ({"causal": True, "window": (100, 0)}, (2, 384, 384, 4, 2, 64), FLASH),
    ({"causal": True}, (1, 300, 200, 4, 4, 96), FLASH),  # queries that see nothing
    ({}, (1, 256, 256, 4, 2, 256), CUDNN),
]


@pytest.mark.parametrize("sinks", [False, True])
@pytest.mark.parametrize(("options", "sizes", "kernel"), CALLS)
def test_fused_gradients_are_right(options, sizes, kernel, sinks, slow_calls):
    batch, queries, keys, heads, kv_heads, dim = sizes
    if sinks and queries > keys:
        pytest.skip("the reference gives a row without keys no sink")
    q, k, v = (random(batch, n, h, dim) for n, h in ((queries, heads), (keys, kv_heads), (keys, kv_heads)))
    sink = torch.randn(heads, device=DEVICE).requires_grad_() if sinks else None
    d_out = torch.randn_like(q)
    given = {"window_size" if name == "window" else name: value for name, value in options.items()}
    out = attention.flash_attn_func(q, k, v, **given, sinks=sink)
    found = list(torch.autograd.grad(out, [q, k, v, *([] if sink is None else [sink])], d_out))
    assert_near(found, float64_gradients(q, k, v, d_out, sink, **options))
    assert not slow_calls
    assert [each.stride() for each in found[:3]] == [torch.empty_like(each).stride() for each in (q, k, v)]
    problem = attention.explain_flash_attn_func(q, k, v, **given, sinks=sink).choice.problem
    expected = kernel if torch.cuda.get_device_capability()[0] in (9, 10) else FLASH
    assert backward.route(problem, q.device, Wanted()).variant == expected


def test_packed_gradients_are_those_of_each_sequence_and_0_where_there_is_none(slow_calls):
    lengths = (100, 1, 300, 64)
    rows, spare = sum(lengths), 7
    q, k, v = (random(rows + spare, h, 128) for h in (8, 2, 2))
    starts = torch.tensor([0, *lengths], device=DEVICE).cumsum(0).int()
    d_out = torch.randn_like(q)
    out = attention.flash_attn_varlen_func(q, k, v, starts, starts, max(lengths), max(lengths), causal=True)
    found = torch.autograd.grad(out, (q, k, v), d_out)
    first = 0
    for length in lengths:
        part = slice(first, first + length)
        wanted = float64_gradients(*(each[None, part] for each in (q, k, v)), d_out[None, part], None, causal=True)
        assert_near([each[part] for each in found], [each[0] for each in wanted])
        first += length
    assert not any(each[rows:].any() for each in found)
    assert not slow_calls


def test_the_forward_of_sdpa_trains_a_square_through_our_kernel(slow_calls):
    q, k, v = (random(2, h, 512, 128) for h in (8, 2, 2))
    out = sdpa(q, k, v, is_causal=True, enable_gqa=True, only="smscope")
    d_out = torch.randn_like(out)
    found = torch.autograd.grad(out, (q, k, v), d_out)
    wanted = float64_gradients(*(each.transpose(1, 2) for each in (q, k, v, d_out)), None, causal=True)
    assert_near(list(found), [each.transpose(1, 2) for each in wanted])
    assert not slow_calls


def test_what_no_fused_backward_serves_warns_once_and_is_right(slow_calls):
    q, k, v = (random(1, 128, 4, 64) for _ in range(3))
    with pytest.warns(FallbackWarning, match="softcap"):
        attention.flash_attn_func(q, k, v, softcap=30.0).sum().backward()
    with warnings.catch_warnings():
        warnings.simplefilter("error", FallbackWarning)
        attention.flash_attn_func(q, k, v, softcap=30.0).sum().backward()
    assert len(slow_calls) == 2
    with pytest.raises(UnsupportedError, match="softcap"):
        attention.flash_attn_func(q, k, v, softcap=30.0, strict=True)


def test_a_gradient_of_lse_is_served_by_the_slow_path(slow_calls):
    q, k, v = (random(1, 128, 4, 64) for _ in range(3))
    with pytest.warns(FallbackWarning, match="gradient of lse"):
        _, lse = attention.flash_attn_func(q, k, v, return_lse=True)
        (d_q,) = torch.autograd.grad(lse.sum(), q)
    assert slow_calls and torch.isfinite(d_q).all()


def test_create_graph_differentiates_twice():
    q, k, v = (random(1, 40, 2, 64, dtype=torch.float16) for _ in range(3))
    (first,) = torch.autograd.grad(attention.flash_attn_func(q, k, v).square().sum(), q, create_graph=True)
    (second,) = torch.autograd.grad(first.float().square().sum(), k)
    assert torch.isfinite(second).all() and second.any()


def test_deterministic_gradients_are_equal_bit_by_bit(slow_calls):
    q, k, v = (random(2, 1024, 8, 64) for _ in range(3))
    d_out = torch.randn_like(q)

    def step() -> tuple[torch.Tensor, ...]:
        return torch.autograd.grad(attention.flash_attn_func(q, k, v, deterministic=True), (q, k, v), d_out)

    torch.use_deterministic_algorithms(True)
    try:
        runs = [step() for _ in range(3)]
    finally:
        torch.use_deterministic_algorithms(False)
    assert not slow_calls
    assert all(torch.equal(one, other) for each in runs[1:] for one, other in zip(runs[0], each, strict=True))
    with pytest.warns(FallbackWarning, match="use_deterministic_algorithms"):
        assert all(torch.equal(one, other) for one, other in zip(step(), step(), strict=True))
    assert len(slow_calls) == 2


@pytest.mark.parametrize("dynamic", [False, True])
def test_a_compiled_training_step_is_one_graph_and_gives_the_same(dynamic):
    torch.compiler.reset()
    q, k, v = (random(2, 4, 256, 64) for _ in range(3))

    def step(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        return sdpa(q, k, v, is_causal=True).float().square().sum()

    wanted = torch.autograd.grad(step(q, k, v), (q, k, v))
    compiled = torch.compile(step, fullgraph=True, dynamic=dynamic, backend="aot_eager")
    torch.testing.assert_close(torch.autograd.grad(compiled(q, k, v), (q, k, v)), wanted, rtol=2e-2, atol=2e-2)


@pytest.mark.parametrize("queries", [1, 16])
@pytest.mark.parametrize("keys", [100, 5000, 40000])
def test_few_queries_are_right_whoever_serves(queries, keys):
    q, k, v = (random(2, h, n, 128).detach() for h, n in ((8, queries), (2, keys), (2, keys)))
    wide = [each.double() for each in (q, k, v)]
    wanted = torch.nn.functional.scaled_dot_product_attention(*wide, enable_gqa=True)
    torch.testing.assert_close(sdpa(q, k, v, enable_gqa=True).double(), wanted, rtol=2e-2, atol=2e-3)
    out, lse = attention.flash_attn_func(*(each.transpose(1, 2) for each in (q, k, v)), return_lse=True)
    torch.testing.assert_close(out.transpose(1, 2).double(), wanted, rtol=2e-2, atol=2e-3)
    scores = wide[0] @ wide[1].repeat_interleave(4, 1).transpose(-1, -2) * 128**-0.5
    torch.testing.assert_close(lse.double(), scores.logsumexp(-1), rtol=1e-4, atol=1e-3)


def test_drafted_tokens_see_the_cache_bottom_right():
    q, k, v = (random(1, n, h, 128).detach() for n, h in ((16, 8), (20000, 2), (20000, 2)))
    out = attention.flash_attn_func(q, k, v, causal=True)
    wide = [each.double().transpose(1, 2) for each in (q, k, v)]
    mask = torch.ones(16, 20000, dtype=torch.bool, device=DEVICE).tril(20000 - 16)
    wanted = torch.nn.functional.scaled_dot_product_attention(*wide, mask, enable_gqa=True)
    torch.testing.assert_close(out.transpose(1, 2).double(), wanted, rtol=2e-2, atol=2e-3)
    assert attention.explain_flash_attn_func(q, k, v, causal=True).choice.pick.variant == "sm80/forward/torch_flash"
