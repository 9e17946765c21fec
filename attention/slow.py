"""The slow path: every feature on every device, in torch operations, in float32 (float64 for float64 inputs)."""

import torch

from attention.extras import NO_EXTRAS, Extras
from attention.layout import empty_lse, empty_out
from attention.pieces import Piece, pieces, scores_of, split
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
    """Out (B, Hq, Sq, Dv) and lse (B, Hq, Sq), as attention.layout has them."""
    # Rows of packed tensors that belong to no sequence stay as they are here.
    out, lse = empty_out(query, value.shape[-1]).zero_(), empty_lse(query).fill_(-torch.inf)
    with torch.autocast(query.device.type, enabled=False):
        for piece in pieces(problem, extras):
            if piece.keys.start < piece.keys.stop:
                _forward(query, key, value, problem, extras, piece, out, lse)
            elif extras.sinks is not None:
                lse[piece.rows] = extras.sinks[piece.heads, None]
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
    scores = scores_of(query, key, problem, extras, piece, lse.dtype).values
    highest = scores.amax(-1)
    sinks = None if extras.sinks is None else split(extras.sinks[piece.heads], 0, scores.shape[1])[..., None]
    highest = highest if sinks is None else highest.maximum(sinks)
    base = highest.masked_fill(highest == -torch.inf, 0.0)  # a row that sees nothing: exp(-inf - 0) is 0
    weights = scores.sub_(base[..., None]).exp_()
    sums = weights.sum(-1)
    sums = sums if sinks is None else sums + (sinks - base).exp()
    products = split(weights.flatten(2, 3) @ piece.keyed(value, lse.dtype)[:, :, 0], 2, scores.shape[2])
    products = products / sums.masked_fill(sums == 0.0, 1.0)[..., None]
    out[piece.rows] = products.flatten(1, 2).to(out.dtype)
    lse[piece.rows] = (base + sums.log()).flatten(1, 2)
