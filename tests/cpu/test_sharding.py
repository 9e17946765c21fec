"""attention of DTensors: what one of two ranks computes, without a second one. Nothing may be sent."""

from collections.abc import Iterator
from typing import Any

import pytest
import torch
import torch.distributed as dist

import attention.op.operators  # noqa: F401  its operators are called by name
from attention import flash_attn_func, flash_attn_varlen_func, sdpa
from tests.tensors import random

if not dist.is_available():
    pytest.skip("this torch has no distributed package", allow_module_level=True)

from torch.distributed.tensor import DeviceMesh, DTensor, Partial, Replicate, Shard, init_device_mesh
from torch.distributed.tensor.debug import CommDebugMode
from torch.testing._internal.distributed.fake_pg import FakeStore

F = torch.nn.functional.scaled_dot_product_attention
CLOSE: dict[str, float] = {"rtol": 0, "atol": 2e-5}
RANKS = 2

pytestmark = [
    pytest.mark.usefixtures("host_machine"),
    pytest.mark.filterwarnings("default"),
    pytest.mark.filterwarnings("ignore::attention.errors.FallbackWarning"),
]


@pytest.fixture(scope="module")
def mesh() -> Iterator[DeviceMesh]:
    dist.init_process_group("fake", rank=0, world_size=RANKS, store=FakeStore())
    yield init_device_mesh("cpu", (RANKS,))
    dist.destroy_process_group()


def sharded(mesh: DeviceMesh, tensor: torch.Tensor, place: Any) -> Any:
    """Rank 0's part of a tensor, as a DTensor with gradients."""
    local = tensor.chunk(RANKS, place.dim)[0] if isinstance(place, Shard) else tensor
    whole: dict[str, Any] = {"shape": tensor.shape, "stride": tensor.stride()}
    found = DTensor.from_local(local.contiguous(), mesh, [place], run_check=False, **whole)
    return found.detach().requires_grad_(tensor.is_floating_point())


def part(tensor: torch.Tensor, place: Any) -> torch.Tensor:
    return tensor.chunk(RANKS, place.dim)[0].detach().clone() if isinstance(place, Shard) else tensor.detach().clone()


PLACES = [Shard(0), Shard(1), Replicate()]


@pytest.mark.parametrize("place", PLACES, ids=str)
@pytest.mark.parametrize("only", ["smscope", None])
def test_batch_and_heads_are_sharded_without_communication(mesh, place, only):
    tensors = random((4, 4, 9, 16), (4, 2, 12, 16), (4, 2, 12, 24))
    given = [sharded(mesh, each, place) for each in tensors]
    mine = [part(each, place).requires_grad_() for each in tensors]
    with CommDebugMode() as sent:
        out = sdpa(*given, is_causal=True, enable_gqa=True, only=only)
        grads = torch.autograd.grad(out, given, torch.ones_like(out))
    expected = F(*mine, is_causal=True, enable_gqa=True)
    assert sent.get_total_counts() == 0
    assert out.placements == (place,) and out.shape == (4, 4, 9, 24)
    torch.testing.assert_close(out.to_local(), expected, **CLOSE)
    for found, theirs in zip(grads, torch.autograd.grad(expected.sum(), mine), strict=True):
        assert found.placements == (place,)
        torch.testing.assert_close(found.to_local(), theirs, **CLOSE)


@pytest.mark.parametrize("place", PLACES, ids=str)
@pytest.mark.parametrize("shape", [(4, 4, 9, 12), (4, 1, 9, 12), (1, 4, 9, 12), (1, 1, 9, 12)])
def test_a_mask_is_sharded_with_them_or_has_a_gradient_in_parts(mesh, place, shape):
    tensors = random((4, 4, 9, 16), (4, 4, 12, 16), (4, 4, 12, 16), shape)
    with_them = isinstance(place, Shard) and shape[place.dim] > 1
    mask_place = place if with_them else Replicate()
    given = [sharded(mesh, each, place) for each in tensors[:3]] + [sharded(mesh, tensors[3], mask_place)]
    mine = [part(each, place).requires_grad_() for each in tensors[:3]] + [
        part(tensors[3], mask_place).requires_grad_()
    ]
    with CommDebugMode() as sent:
        out, _ = torch.ops.smscope.attention_forward(*given[:3], mask=given[3])
        (grad,) = torch.autograd.grad(out, given[3], torch.ones_like(out))
    assert sent.get_total_counts() == 0
    expected = F(*mine)
    torch.testing.assert_close(out.to_local(), expected, **CLOSE)
    in_parts = isinstance(place, Shard) and not with_them
    assert grad.placements == (Partial() if in_parts else mask_place,)
    torch.testing.assert_close(grad.to_local(), torch.autograd.grad(expected.sum(), mine[3])[0], **CLOSE)


@pytest.mark.parametrize("place", [Shard(0), Shard(1)], ids=str)
@pytest.mark.parametrize("by_batch", [False, True])
def test_slopes_and_sinks_follow(mesh, place, by_batch):
    q, k = random((4, 9, 4, 16), (4, 12, 2, 16))
    slopes, sinks = (each.abs() for each in random((4, 4) if by_batch else (4,), (4,)))
    layout = Shard(2 if place.dim else 0)  # of (B, S, H, D)
    of_slopes: Any = place if by_batch else Shard(0) if place.dim else Replicate()
    of_sinks: Any = Shard(0) if place.dim else Replicate()
    given = (sharded(mesh, q, layout), sharded(mesh, k, layout), sharded(mesh, k, layout))
    extras = {"alibi_slopes": sharded(mesh, slopes, of_slopes), "sinks": sharded(mesh, sinks, of_sinks)}
    out = flash_attn_func(*given, causal=True, **extras)  # type: ignore[arg-type]
    local = {"alibi_slopes": part(slopes, of_slopes), "sinks": part(sinks, of_sinks)}
    expected = flash_attn_func(part(q, layout), part(k, layout), part(k, layout), causal=True, **local)  # type: ignore[arg-type]
    assert out.placements == (layout,)  # type: ignore[union-attr]
    torch.testing.assert_close(out.to_local(), expected, **CLOSE)  # type: ignore[union-attr]


def test_packed_sequences_are_sharded_by_heads(mesh):
    (q,) = random((8, 4, 16))
    starts = torch.tensor([0, 3, 8], dtype=torch.int32)
    given, whole = sharded(mesh, q, Shard(1)), sharded(mesh, starts, Replicate())
    out = flash_attn_varlen_func(given, given, given, whole, whole, 5, 5, causal=True)
    mine = part(q, Shard(1))
    expected = flash_attn_varlen_func(mine, mine, mine, starts, starts, 5, 5, causal=True)
    assert out.placements == (Shard(1),)  # type: ignore[union-attr]
    torch.testing.assert_close(out.to_local(), expected, **CLOSE)  # type: ignore[union-attr]


def test_heads_that_do_not_divide_are_gathered_first(mesh):
    """Three key heads on two ranks: a rank's query heads would lose theirs."""
    q, k = random((1, 6, 9, 16), (1, 3, 12, 16))
    given = [sharded(mesh, each, Shard(1)) for each in (q, k, k)]
    with CommDebugMode() as sent:
        out = sdpa(*given, enable_gqa=True, only="smscope")
    assert sent.get_total_counts() > 0 and out.placements == (Replicate(),)
