"""The slow path: every feature on every device, in torch operations, in float32 (float64 for float64 inputs)."""

from functools import reduce

import torch

from attention.call import NO_EXTRAS, Extras
from attention.feature import At
from attention.kernels.common.layout import empty_lse, empty_out
from attention.kernels.torch.composed.pieces import Piece, logits_of, operands_of, pieces, placed, scores_of, split
from attention.problem import AttentionProblem
from attention.variant import Config


def forward(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    problem: AttentionProblem,
    config: Config,
    extras: Extras = NO_EXTRAS,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Out (B, Hq, Sq, Dv) and lse (B, Hq, Sq), as attention.kernels.common.layout has them."""
    # Rows of packed tensors that belong to no sequence stay as they are here.
    out, lse = empty_out(query, value.shape[-1]).zero_(), empty_lse(query).fill_(-torch.inf)
    with torch.autocast(query.device.type, enabled=False):
        for piece in pieces(problem, extras):
            if piece.keys.start < piece.keys.stop:
                _forward(query, key, value, problem, extras, piece, out, lse)
                continue
            operands = operands_of(extras, piece, lse.dtype)
            for _, logit in logits_of(operands, placed(piece.at(query.device), operands)):
                lse[piece.rows] = torch.logaddexp(piece.grouped(lse, lse.dtype), logit).flatten(1, 2)
    return out, lse


def nothing_seen(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    problem: AttentionProblem,
    config: Config,
    extras: Extras = NO_EXTRAS,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Where there are no queries, or no keys to see: out is 0, and lse -inf, or the logits without a value."""
    out, lse = empty_out(query, value.shape[-1]).zero_(), empty_lse(query).fill_(-torch.inf)
    operands = operands_of(extras, None, lse.dtype)
    rows, keys = (torch.arange(tensor.shape[2], device=query.device) for tensor in (query, key))
    for _, logit in logits_of(operands, placed(At(rows[:, None], keys, len(rows), len(keys)), operands)):
        lse.copy_(torch.logaddexp(lse, logit))
    return out, lse


def _forward(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    problem: AttentionProblem,
    extras: Extras,
    piece: Piece,
    out: torch.Tensor,
    lse: torch.Tensor,
) -> None:
    found = scores_of(query, key, problem, extras, piece, lse.dtype)
    scores, logits = found.values, [logit for _, logit in logits_of(found.operands, found.at)]
    highest = reduce(torch.maximum, logits, scores.amax(-1))
    base = highest.masked_fill(highest == -torch.inf, 0.0)  # a row that sees nothing: exp(-inf - 0) is 0
    weights = scores.sub_(base[..., None]).exp_()
    sums = sum(((logit - base).exp() for logit in logits), start=weights.sum(-1))
    products = split(weights.flatten(2, 3) @ piece.keyed(value, lse.dtype)[:, :, 0], 2, scores.shape[2])
    products = products / sums.masked_fill(sums == 0.0, 1.0)[..., None]
    out[piece.rows] = products.flatten(1, 2).to(out.dtype)
    lse[piece.rows] = (base + sums.log()).flatten(1, 2)
