"""Attention in single torch operations, with lse: the same passes over memory as torch's own math path."""

import torch

from attention.layout import empty_lse, empty_out
from attention.problem import AttentionProblem
from attention.variant import Config


def forward(
    query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, problem: AttentionProblem, config: Config
) -> tuple[torch.Tensor, torch.Tensor]:
    """Out (B, Hq, Sq, Dv) and lse (B, Hq, Sq), as attention.layout has them."""
    lse = empty_lse(query)
    group = query.shape[1] // key.shape[1]
    q, k = query.to(lse.dtype), key.to(lse.dtype).repeat_interleave(group, dim=1)
    scores = (q @ k.transpose(-1, -2)) * problem.softmax_scale
    if problem.causal:
        seen = torch.ones(scores.shape[-2:], dtype=torch.bool, device=query.device).tril()
        scores = scores.masked_fill(~seen, -torch.inf)
    torch.logsumexp(scores, dim=-1, out=lse)
    weights = (scores - lse[..., None]).exp()
    out = weights @ value.to(lse.dtype).repeat_interleave(group, dim=1)
    return empty_out(query, value.shape[-1]).copy_(out), lse
