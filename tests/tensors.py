"""Random tensors for tests."""

from collections.abc import Sequence
from typing import Any

import torch

Shape = tuple[int, ...]


def random(
    *shapes: Shape, dtype: torch.dtype = torch.float32, seed: int = 0, grad: bool = False, device: Any = "cpu"
) -> list[torch.Tensor]:
    """N(0, 1), the same for the same seed."""
    generator = torch.Generator().manual_seed(seed)
    return [torch.randn(shape, generator=generator).to(device, dtype).requires_grad_(grad) for shape in shapes]


def assert_same_gradients(
    ours: torch.Tensor, theirs: torch.Tensor, inputs: Sequence[torch.Tensor], **close: float
) -> None:
    """Of the sum of each."""
    torch.testing.assert_close(*(torch.autograd.grad(out.sum(), inputs) for out in (ours, theirs)), **close)
