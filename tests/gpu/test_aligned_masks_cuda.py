"""Masks whose rows begin anywhere, by the kernel that is given copies: against the oracle, eager and captured."""

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np
import pytest
import torch

import attention.op.operators  # noqa: F401  its operators are called by name
from attention import sdpa
from attention.call import Extras
from attention.kernels.launch.machine import Gpu, Held
from attention.oracle import reference
from tests.tensors import assert_same_gradients, random

# Warnings of torch itself are torch's affair.
pytestmark = [
    pytest.mark.gpu,
    pytest.mark.usefixtures("hopper"),
    pytest.mark.filterwarnings("default"),
    pytest.mark.filterwarnings("ignore::attention.errors.FallbackWarning"),
]
BATCH, HEADS, ROWS = 2, 4, 197
ONLY = "warp_specialised"
DTYPES = {str(each): each for each in (torch.bool, torch.bfloat16, torch.float16, torch.float32)}
ATOL = {torch.float16: 4e-3, torch.bfloat16: 3e-2}
SHAPES: dict[str, tuple[int, ...]] = {
    "one for all heads": (1, 1, ROWS, ROWS),
    "of padding": (BATCH, 1, 1, ROWS),
    "of each head": (BATCH, HEADS, ROWS, ROWS),
    "one key for all": (BATCH, 1, ROWS, 1),
}
on_gpu = partial(random, device="cuda")
each_dtype = pytest.mark.parametrize("dtype", DTYPES.values(), ids=[*DTYPES])


@pytest.fixture
def given(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[torch.Tensor]]:
    """The masks that kernels of ours were given."""
    found: list[torch.Tensor] = []
    launch = Gpu.launch

    def noted(self: Gpu, frame: Any, held: Held, extras: Extras | Sequence[torch.Tensor]) -> None:
        found.append(extras.mask if isinstance(extras, Extras) else extras[0])  # a known call brings its mask alone
        launch(self, frame, held, extras)

    monkeypatch.setattr(Gpu, "launch", noted)
    yield found


def mask_of(shape: tuple[int, ...], dtype: torch.dtype, seed: int = 1) -> torch.Tensor:
    """A third is hidden, by False or -inf; each row sees the first key, if there are several."""
    (bias,) = on_gpu(shape, seed=seed)
    seen = bias > -0.4
    seen[..., :1] |= shape[-1] > 1
    return seen if dtype == torch.bool else bias.masked_fill(~seen, -torch.inf).to(dtype)


def inputs(mask: torch.Tensor) -> list[torch.Tensor]:
    dtype = torch.bfloat16 if mask.dtype == torch.bfloat16 else torch.float16
    return on_gpu(*[(BATCH, HEADS, ROWS, 88)] * 3, dtype=dtype)


def require_right(found: torch.Tensor, tensors: list[torch.Tensor], mask: torch.Tensor, **features: Any) -> None:
    arrays = [each.double().cpu().numpy() for each in tensors]
    seen = mask if mask.dtype == torch.bool else mask.double()
    oracle, _ = reference.attention(*arrays, mask=seen.cpu().numpy(), **features)
    np.testing.assert_allclose(found.double().cpu().numpy(), oracle, rtol=0, atol=ATOL[found.dtype])


def require_aligned(mask: torch.Tensor) -> None:
    assert mask.stride(-1) == 1
    assert not any(
        place % 16 for place in (mask.data_ptr(), *(mask.element_size() * each for each in mask.stride()[:3]))
    )


@each_dtype
@pytest.mark.parametrize("shape", SHAPES.values(), ids=[*SHAPES])
def test_rows_anywhere_are_read_right(shape: Any, dtype: torch.dtype, given: list[torch.Tensor]) -> None:
    mask = mask_of(shape, dtype)
    tensors = inputs(mask)
    require_right(sdpa(*tensors, mask, only=ONLY), tensors, mask)
    (brought,) = given
    require_aligned(brought)


@each_dtype
def test_the_next_mask_of_a_kind_is_read_anew(dtype: torch.dtype, given: list[torch.Tensor]) -> None:
    for seed in range(3):
        mask = mask_of(SHAPES["one for all heads"], dtype, seed)
        tensors = inputs(mask)
        require_right(sdpa(*tensors, mask, only=ONLY), tensors, mask)
    assert len(given) == 3


@each_dtype
@pytest.mark.parametrize("shape", SHAPES.values(), ids=[*SHAPES])
def test_a_captured_call_follows_its_mask(shape: Any, dtype: torch.dtype) -> None:
    mask = mask_of(shape, dtype)
    tensors = inputs(mask)
    sdpa(*tensors, mask, only=ONLY)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        found = sdpa(*tensors, mask, only=ONLY)
    for seed in (2, 3):
        mask.copy_(mask_of(shape, dtype, seed))
        graph.replay()
        require_right(found, tensors, mask)


def test_a_mask_beside_causality_and_alibi_is_read_right(given: list[torch.Tensor]) -> None:
    mask, slopes = mask_of(SHAPES["one for all heads"], torch.bool), torch.rand(HEADS, device="cuda")
    tensors = inputs(mask)
    found, _ = torch.ops.smscope.attention_forward(*tensors, mask=mask, alibi=slopes, causal=True, only=ONLY)
    require_right(found, tensors, mask, alibi=slopes.cpu().numpy(), causal=True)
    require_aligned(given[0])


def test_gradients_reach_the_callers_mask() -> None:
    bias = mask_of(SHAPES["one for all heads"], torch.float16).clamp(min=-4).requires_grad_()
    tensors = [each.requires_grad_() for each in inputs(bias)]
    q, k, v = (each.double() for each in tensors)
    expected = (q @ k.mT / 88**0.5 + bias.double()).softmax(-1) @ v
    assert_same_gradients(sdpa(*tensors, bias, only="smscope"), expected, (*tensors, bias), rtol=2e-2, atol=2e-2)
