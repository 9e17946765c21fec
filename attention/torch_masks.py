"""Bands and masks as torch's CPU kernels take them: one additive mask, -inf where nothing is seen."""

import torch

from attention.band import Band
from attention.problem import AttentionProblem
from attention.torch_limits import band_in_mask


def additive(problem: AttentionProblem, mask: torch.Tensor | None, dtype: torch.dtype) -> torch.Tensor | None:
    """What is added to the scores of a problem, broadcast to (B, Hq, Sq, Skv); None where nothing is."""
    seen = _seen(problem.band(), problem.seq_q, problem.seq_kv) if band_in_mask(problem) else None
    if mask is not None and mask.dtype != torch.bool:
        mask = mask.to(dtype)
        return mask if seen is None else mask.masked_fill(~seen, -torch.inf)
    if mask is not None:
        seen = mask if seen is None else mask & seen
    return None if seen is None else torch.zeros(seen.shape, dtype=dtype).masked_fill_(~seen, -torch.inf)


def _seen(band: Band, queries: int, keys: int) -> torch.Tensor:
    """Bool (Sq, Skv): the keys of the band."""
    beyond = torch.arange(keys) - torch.arange(queries)[:, None]
    seen = torch.ones_like(beyond, dtype=torch.bool)
    if band.left is not None:
        seen &= beyond >= band.left
    if band.right is not None:
        seen &= beyond <= band.right
    return seen
