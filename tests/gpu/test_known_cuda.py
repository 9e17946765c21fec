"""The second call of a kind on a GPU, which nobody judges again: the same numbers, whatever is on around it."""

from collections.abc import Callable
from contextlib import nullcontext
from functools import partial
from typing import Any

import pytest
import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.attention.bias import causal_lower_right
from torch.utils.checkpoint import checkpoint

from attention import flash_attn_func, flash_attn_varlen_func, sdpa
from attention.frontends import kept
from attention.frontends import sdpa as frontend
from attention.frontends.flash_attn import functions
from attention.frontends.flash_attn import kept as kept_of_flash
from attention.op.known import Known
from attention.torch_private import torch_sdpa
from tests.tensors import assert_same_gradients, random

pytestmark = [pytest.mark.gpu, pytest.mark.filterwarnings("default")]

CLOSE: dict[str, float] = {"rtol": 2e-2, "atol": 2e-2}
SHAPE, GROUPED = (2, 8, 200, 128), (2, 2, 200, 128)
on_gpu = partial(random, dtype=torch.bfloat16, device="cuda")
OURS: dict[str, Any] = {"only": "smscope"}
OPTIONS: dict[str, dict[str, Any]] = {
    "plain": {},
    "causal": {"is_causal": True},
    "scaled": {"scale": 0.3},
    "grouped": {"enable_gqa": True},
}


@pytest.fixture(autouse=True)
def unknown() -> None:
    for known in (kept.KNOWN, kept_of_flash.KNOWN):
        known.forget()


@pytest.fixture
def nobody_judges(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """From the call of this on, whatever would be judged fails."""

    def from_now_on() -> None:
        for module, name in ((frontend, "_judged"), (functions, "judge")):
            monkeypatch.setattr(module, name, lambda *_, **__: pytest.fail("a known call was judged"))

    return from_now_on


@pytest.mark.parametrize("only", ["smscope", None])
@pytest.mark.parametrize("grad", [False, True])
@pytest.mark.parametrize("options", OPTIONS.values(), ids=[*OPTIONS])
def test_the_second_call_of_sdpa(options: Any, grad: bool, only: str | None, nobody_judges: Any) -> None:
    keys = GROUPED if options.get("enable_gqa") else SHAPE
    inputs = on_gpu(SHAPE, keys, keys, grad=grad)
    first = sdpa(*inputs, **options, only=only)
    if kept.KNOWN.calls or only is not None:  # a shape that is new may be torch's later on, and is judged till then
        nobody_judges()
    found = sdpa(*inputs, **options, only=only)
    expected = torch_sdpa(*inputs, **options)
    torch.testing.assert_close(first, expected, **CLOSE)
    torch.testing.assert_close(found, expected, **CLOSE)
    if grad:
        # Gradients of q and k grow with the scale, up to 15 at 0.3, and so do their errors: of ours 0.08, of torch's
        # 0.06 from float64's (H200, four seeds), as p of a row whose maximum is an older one is no exact 1.
        atol = 5e-2 * max(1.0, (options.get("scale") or 0.0) * SHAPE[-1] ** 0.5)
        assert_same_gradients(found, expected, inputs, rtol=5e-2, atol=atol)


@pytest.mark.parametrize("grad", [False, True])
@pytest.mark.parametrize("causal", [False, True])
def test_the_second_call_of_flash_attn_func(causal: bool, grad: bool, nobody_judges: Any) -> None:
    inputs = on_gpu(*[(2, 200, 8, 128)] * 3, grad=grad)
    flash_attn_func(*inputs, causal=causal, **OURS)
    nobody_judges()
    found = flash_attn_func(*inputs, causal=causal, **OURS)
    expected = torch_sdpa(*(each.transpose(1, 2) for each in inputs), is_causal=causal).transpose(1, 2)
    torch.testing.assert_close(found, expected, **CLOSE)
    assert found.is_contiguous()
    if grad:
        assert_same_gradients(found, expected, inputs, rtol=5e-2, atol=5e-2)


def _masks() -> dict[str, torch.Tensor]:
    rng = torch.Generator().manual_seed(2)
    wide = torch.rand(2, 1, 200, 203, generator=rng) < 0.7
    seen = wide[..., :200].contiguous()
    return {
        "bools": seen.cuda(),
        "bools for all": seen[0, 0].cuda(),
        "floats": torch.randn(1, 8, 200, 200, generator=rng).bfloat16().cuda(),
        "floats for all": torch.randn(200, 200, generator=rng).bfloat16().cuda(),
        "rows that begin anywhere": wide.cuda()[..., 1:201],
    }


@pytest.mark.parametrize("name", ["bools", "bools for all", "floats", "floats for all", "rows that begin anywhere"])
def test_the_second_call_with_a_mask(name: str, nobody_judges: Any) -> None:
    inputs, mask = on_gpu(*[SHAPE] * 3), _masks()[name]
    sdpa(*inputs, mask, **OURS)
    nobody_judges()
    found = sdpa(*inputs, mask, **OURS)
    torch.testing.assert_close(found, torch_sdpa(*inputs, mask.contiguous()), **CLOSE)


def test_the_second_call_that_is_causal_from_its_end(nobody_judges: Any) -> None:
    inputs, bias = on_gpu((2, 8, 4, 128), SHAPE, SHAPE), causal_lower_right(4, 200)
    sdpa(*inputs, bias, **OURS)
    nobody_judges()
    seen = torch.ones(4, 200, dtype=torch.bool, device="cuda").tril(196)
    torch.testing.assert_close(sdpa(*inputs, bias, **OURS), torch_sdpa(*inputs, seen), **CLOSE)


@pytest.mark.parametrize("width", [128, 36])  # the second one is a width that torch pads, above the operator
def test_the_second_call_by_torchs_flash_attention_that_is_causal_from_its_end(width: int) -> None:
    shapes = (2, 8, 4, width), (2, 8, 200, width), (2, 8, 200, width)
    inputs, bias = on_gpu(*shapes), causal_lower_right(4, 200)
    seen = torch.ones(4, 200, dtype=torch.bool, device="cuda").tril(196)
    wanted = torch_sdpa(*inputs, seen)
    for _ in range(2):
        torch.testing.assert_close(sdpa(*inputs, bias, only="torch_flash"), wanted, **CLOSE)


BATCH, STARTS = 2, (0, 70, 200)
FEATURES: dict[str, Callable[[], dict[str, Any]]] = {
    "slopes": lambda: {"alibi_slopes": torch.rand(8, device="cuda")},
    "sinks of 16 bits": lambda: {"s_aux": torch.randn(8, device="cuda").bfloat16()},
    "used keys": lambda: {"seqused_k": torch.randint(1, 70, (BATCH,), device="cuda", dtype=torch.int32)},
    "padding": lambda: {"leftpad_k": torch.randint(0, 60, (BATCH,), device="cuda")},
    "lse": lambda: {"return_lse": True},
}


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("name", FEATURES)
def test_known_calls_with_features_give_what_judged_ones_give(name: str, packed: bool) -> None:
    starts = torch.tensor(STARTS, device="cuda", dtype=torch.int32)
    shape, lengths = ((200, 8, 128), (starts, starts, 130, 130)) if packed else ((BATCH, 200, 8, 128), ())
    call: Any = flash_attn_varlen_func if packed else flash_attn_func
    for seed in range(3):
        inputs, features = random(*[shape] * 3, dtype=torch.bfloat16, device="cuda", seed=seed), FEATURES[name]()
        found = call(*inputs, *lengths, causal=True, **features, **OURS)
        assert len(kept_of_flash.KNOWN.calls) == 1
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(kept_of_flash, "KNOWN", Known())
            judged = call(*inputs, *lengths, causal=True, **features, **OURS)
        torch.testing.assert_close(found, judged, rtol=1e-3, atol=1e-3)


CONTEXTS: dict[str, Callable[[], Any]] = {
    "nothing": nullcontext,
    "a default device": lambda: torch.device("cpu"),
    "inference mode": torch.inference_mode,
    "another stream": lambda: torch.cuda.stream(torch.cuda.Stream()),
}


@pytest.mark.parametrize("context", CONTEXTS)
def test_what_asks_nothing_of_torch_leaves_it_known(context: str, nobody_judges: Any) -> None:
    inputs = on_gpu(*[SHAPE] * 3)
    sdpa(*inputs, **OURS)
    nobody_judges()
    torch.cuda.synchronize()
    with CONTEXTS[context]():
        found = [sdpa(*inputs, **OURS) for _ in range(20)]
    torch.cuda.synchronize()
    for each in found:
        torch.testing.assert_close(each, torch_sdpa(*inputs), **CLOSE)


def test_other_addresses_are_read_where_they_lie(nobody_judges: Any) -> None:
    sdpa(*on_gpu(*[SHAPE] * 3), **OURS)
    nobody_judges()
    for _ in range(300):  # more than heads of arguments are kept
        inputs = tuple(torch.randn(SHAPE, device="cuda", dtype=torch.bfloat16) for _ in range(3))
        held = torch.empty(torch.randint(1, 5, ()).item() << 20, device="cuda")
        found = sdpa(*inputs, **OURS)
        del held
    torch.testing.assert_close(found, torch_sdpa(*inputs), **CLOSE)


def test_an_odd_address_is_judged_and_copied() -> None:
    sdpa(*on_gpu(*[SHAPE] * 3), **OURS)
    flat = torch.randn(2 * 8 * 200 * 128 + 1, device="cuda", dtype=torch.bfloat16)
    odd = flat[1:].view(SHAPE)
    torch.testing.assert_close(sdpa(odd, odd, odd, **OURS), torch_sdpa(*[odd.clone()] * 3), **CLOSE)


def test_a_captured_call_follows_its_inputs(nobody_judges: Any) -> None:
    inputs = on_gpu(*[SHAPE] * 3)
    sdpa(*inputs, **OURS)
    nobody_judges()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        found = sdpa(*inputs, **OURS)
    for _ in range(3):
        for each in inputs:
            each.normal_()
        graph.replay()
        torch.testing.assert_close(found, torch_sdpa(*inputs), **CLOSE)


def test_a_backend_of_torchs_that_is_asked_for_serves_a_known_call() -> None:
    inputs = on_gpu(*[SHAPE] * 3)
    for _ in range(2):
        sdpa(*inputs)
    with sdpa_kernel(SDPBackend.MATH):
        assert torch.equal(sdpa(*inputs), torch_sdpa(*inputs))


def test_autocast_meets_a_known_call() -> None:
    inputs = on_gpu(*[SHAPE] * 3)
    sdpa(*inputs, **OURS)
    with torch.autocast("cuda", torch.float16):
        assert sdpa(*inputs, **OURS).dtype is torch.float16


@pytest.mark.parametrize("turned", [False, True])
def test_a_checkpoint_replays_what_was_cold(turned: bool) -> None:
    shape = (2, 200, 8, 128) if turned else SHAPE
    inputs = on_gpu(shape, shape, shape, grad=True)
    call = partial(flash_attn_func if turned else sdpa, **OURS)
    found = checkpoint(call, *inputs, use_reentrant=False)
    assert_same_gradients(found, call(*inputs), inputs, rtol=5e-2, atol=5e-2)
