"""Tensors that lie where no kernel may read 16 bytes at once: as right as dense ones, by every door, decode included.

Torch's own function gives wrong numbers for some of them, and ends the context for others (torch 2.11, H200).
"""

import pytest
import torch

from attention import flash_attn_func, sdpa

pytestmark = [pytest.mark.gpu, pytest.mark.filterwarnings("ignore::attention.errors.FallbackWarning")]

LAYOUTS = (
    *("dense", "late", "late rows of heads", "odd rows", "odd heads", "columns", "rows of heads"),
    *("third of a row", "begin of a cache", "begin of a cache of rows"),
)
# batch, query heads, key heads, queries, keys, head dim
SIZES = {
    "square": (2, 4, 4, 256, 256, 64),
    "groups": (2, 8, 2, 256, 300, 128),
    "decode": (1, 32, 32, 1, 4096, 128),
    "decode, groups": (1, 32, 8, 1, 4096, 128),
    "odd head dim": (2, 4, 4, 128, 128, 33),
    "decode, odd head dim": (1, 8, 8, 1, 4096, 36),
    "one element": (1, 1, 1, 1, 2, 1),
}


def lying(layout: str, batch: int, heads: int, rows: int, dim: int, dtype: torch.dtype) -> torch.Tensor:
    """Random (B, H, S, D); what lies between its elements is NaN."""

    def room(*size: int, begin: int = 0) -> torch.Tensor:
        count = torch.Size(size).numel()
        return torch.full((count + begin,), torch.nan, device="cuda", dtype=dtype)[begin:].view(size)

    made = {
        "dense": lambda: room(batch, heads, rows, dim),
        "late": lambda: room(batch, heads, rows, dim, begin=1),
        "late rows of heads": lambda: room(batch, rows, heads, dim, begin=1).transpose(1, 2),
        "odd rows": lambda: room(batch, heads, rows, dim + 1)[..., :dim],
        "odd heads": lambda: room(batch, heads, rows * dim + 1)[..., : rows * dim].unflatten(-1, (rows, dim)),
        "columns": lambda: room(batch, heads, dim, rows).mT,
        "rows of heads": lambda: room(batch, rows, heads, dim).transpose(1, 2),
        "third of a row": lambda: room(batch, rows, 3, heads, dim)[:, :, 1].transpose(1, 2),
        "begin of a cache": lambda: room(batch, heads, rows + 64, dim)[:, :, :rows],
        "begin of a cache of rows": lambda: room(batch, rows + 64, heads, dim)[:, :rows].transpose(1, 2),
    }[layout]()
    generator = torch.Generator("cuda").manual_seed(rows)
    return made.copy_(torch.randn(batch, heads, rows, dim, generator=generator, device="cuda"))


def exact(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor) -> torch.Tensor:
    group = query.shape[1] // key.shape[1]
    q, k, v = query.double(), *(each.double().repeat_interleave(group, 1) for each in (key, value))
    return (q @ k.mT * q.shape[-1] ** -0.5).softmax(-1) @ v


def by_flash_attn(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor) -> torch.Tensor:
    out = flash_attn_func(*(each.transpose(1, 2) for each in (query, key, value)))
    assert isinstance(out, torch.Tensor)
    return out.transpose(1, 2)


def agree(found: torch.Tensor, wanted: torch.Tensor, tensors: list[torch.Tensor], wide: list[torch.Tensor]) -> None:
    """Results, and gradients where there are any. What comes in is dense: of calls that are torch's, torch reads it."""
    torch.testing.assert_close(found.double(), wanted, rtol=2e-2, atol=2e-2)
    if not found.requires_grad:
        return
    upstream = torch.randn_like(found)
    got = torch.autograd.grad(found, tensors, upstream)
    for ours, theirs in zip(got, torch.autograd.grad(wanted, wide, upstream.double(), retain_graph=True), strict=True):
        torch.testing.assert_close(ours.double(), theirs, rtol=0, atol=4e-2 * theirs.abs().max().item())


DOORS = {
    "sdpa": lambda q, k, v: sdpa(q, k, v, enable_gqa=q.shape[1] != k.shape[1]),
    "torch": lambda q, k, v: sdpa(q, k, v, enable_gqa=q.shape[1] != k.shape[1], only="torch"),
    "flash_attn_func": by_flash_attn,
}


@pytest.mark.parametrize("sizes", SIZES)
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("grad", [False, True], ids=["forward", "gradients"])
def test_where_tensors_lie_changes_no_result(layout, sizes, grad):
    batch, heads, heads_kv, rows, keys, dim = SIZES[sizes]
    dtype = torch.float32 if sizes == "one element" else torch.bfloat16
    kinds = ((heads, rows), (heads_kv, keys), (heads_kv, keys))
    tensors = [lying(layout, batch, *kind, dim, dtype).requires_grad_(grad) for kind in kinds]
    wide = [each.detach().double().requires_grad_(grad) for each in tensors]
    wanted = exact(*wide)
    for door in (*DOORS, *reversed(DOORS)):  # a plan that torch keeps for one door's call serves the next one's
        agree(DOORS[door](*tensors), wanted, tensors, wide)


def numbers(*size: int) -> torch.Tensor:
    return torch.randn(size, device="cuda", dtype=torch.bfloat16)


MASKS = {
    "dense": lambda b, rows, keys: numbers(b, 1, rows, keys),
    "late": lambda b, rows, keys: numbers(b * rows * keys + 1)[1:].view(b, 1, rows, keys),
    "odd rows": lambda b, rows, keys: numbers(b, 1, rows, keys + 1)[..., :keys],
    "columns": lambda b, rows, keys: numbers(b, 1, keys, rows).mT,
    "one row for all": lambda b, rows, keys: numbers(b, 1, 1, keys).expand(b, 4, rows, keys),
    "last of a row": lambda b, rows, keys: numbers(b, 1, 1, keys + 3)[..., 3:].expand(b, 4, rows, keys),
}


@pytest.mark.parametrize("only", [None, "torch"])
@pytest.mark.parametrize("grad", [False, True], ids=["forward", "gradients"])
@pytest.mark.parametrize("sizes", [(256, 256), (1, 1000), (100, 77)], ids=str)
@pytest.mark.parametrize("layout", MASKS)
def test_where_a_float_mask_lies_changes_no_result(layout, sizes, grad, only):
    rows, keys = sizes
    tensors = [numbers(2, 4, count, 64).requires_grad_(grad) for count in (rows, keys, keys)]
    mask = MASKS[layout](2, rows, keys)
    found = sdpa(*tensors, attn_mask=mask, only=only)
    wide = [each.detach().double().requires_grad_(grad) for each in tensors]
    wanted = (wide[0] @ wide[1].mT / 8 + mask.double()).softmax(-1) @ wide[2]
    agree(found, wanted, tensors, wide)
