"""Masks of 32 bits beside inputs of 64, which torch's kernel for a CPU reads as if they had 64."""

import math

import pytest
import torch

import attention


def exact(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    scores = query @ key.mT / math.sqrt(query.shape[-1]) + mask
    return torch.softmax(scores, -1) @ value


@pytest.mark.parametrize("learned", [False, True], ids=["", "a mask with gradients"])
@pytest.mark.parametrize("keys", [9, 64, 200])
@pytest.mark.parametrize("installed", [False, True], ids=["attention.sdpa", "installed"])
def test_a_float32_mask_is_added_to_float64_scores(keys: int, installed: bool, learned: bool) -> None:
    generator = torch.Generator().manual_seed(keys)
    shapes = (2, 2, 64, 16), (2, 2, keys, 16), (2, 2, keys, 16)
    tensors = [torch.randn(*shape, dtype=torch.float64, generator=generator).requires_grad_() for shape in shapes]
    mask = torch.randn(64, keys, generator=generator).requires_grad_(learned)
    if installed:
        attention.install()
    try:
        call = torch.nn.functional.scaled_dot_product_attention if installed else attention.sdpa
        found = call(*tensors, attn_mask=mask)
    finally:
        attention.uninstall()
    expected = exact(*tensors, mask.double())
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-12)
    upstream = torch.randn(found.shape, dtype=torch.float64, generator=generator)
    wanted = (*tensors, mask) if learned else tensors
    both = (torch.autograd.grad(each, wanted, upstream) for each in (found, expected))
    for one, other in zip(*both, strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=1e-5 if one.dtype is torch.float32 else 1e-12)
