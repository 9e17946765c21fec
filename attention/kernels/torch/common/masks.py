"""A band as a bool mask, and bands and masks as torch's CPU kernels take them: one additive mask, -inf where unseen."""

from __future__ import annotations

from typing import TYPE_CHECKING

from attention.kernels.torch.common.limits import band_in_mask
from attention.problem import AttentionProblem

if TYPE_CHECKING:
    import torch
    from torch import Tensor


def additive(problem: AttentionProblem, mask: Tensor | None, query: Tensor) -> Tensor | None:
    """What is added to the scores of `query`, broadcast to (B, Hq, Sq, Skv); None where nothing is."""
    banded = band_in_mask(problem)
    if mask is None and not banded:
        return None
    import torch

    dtype, device, seen = query.dtype, query.device, None
    if banded:
        band = problem.band()
        seen = seen_in_band(band.left, band.right, problem.seq_q, problem.seq_kv, device)
    if mask is not None and mask.dtype != torch.bool:
        mask = mask.to(dtype)
        return mask if seen is None else mask.masked_fill(~seen, -torch.inf)
    if mask is not None:
        seen = mask if seen is None else mask & seen
    assert seen is not None
    return torch.zeros(seen.shape, dtype=dtype, device=device).masked_fill_(~seen, -torch.inf)


def seen_in_band(left: int | None, right: int | None, queries: int, keys: int, device: torch.device) -> Tensor:
    """Bool (Sq, Skv): query i sees keys i + left to i + right; None is an open side (attention.band)."""
    import torch

    i = torch.arange(queries, device=device)[:, None]
    j = torch.arange(keys, device=device)
    seen = torch.ones(queries, keys, dtype=torch.bool, device=device)
    if left is not None:
        seen &= j >= i + left
    if right is not None:
        seen &= j <= i + right
    return seen
