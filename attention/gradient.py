"""The backward: correct on every device and for every feature, in torch operations; slow beside a fused kernel.

    P = exp(S - lse)      dV = P^T dO     dP = dO V^T    D = rowsum(dO * out) - dlse     dS = P * (dP - D)
    dmask = dS            dslope = -sum(dS * |i + Skv - Sq - j|)       dsink = -sum(exp(sink - lse) * D)
    dT = dS * (1 - tanh^2) with softcap, else dS                       dQ = scale dT K             dK = scale dT^T Q

Scores are recomputed piece by piece, so that memory grows with the sequence, not with its square.
"""

import torch

from attention.extras import Extras
from attention.forwarded import Gradients
from attention.pieces import Piece, pieces, scores_of
from attention.problem import AttentionProblem


def backward(
    grad_out: torch.Tensor,
    grad_lse: torch.Tensor | None,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    out: torch.Tensor,
    lse: torch.Tensor,
    problem: AttentionProblem,
    extras: Extras,
    wanted: tuple[bool, bool, bool],
    nothing_seen: bool = False,
) -> Gradients:
    """Gradients of every input. `extras` are not expanded here; `wanted`: of mask, alibi and sinks.

    `grad_lse`: None where nothing depends on lse.
    `nothing_seen`: there are no queries, or no keys, and sizes of 0 that a problem cannot say.
    """
    working = lse.dtype
    sums = Gradients(
        torch.zeros_like(query),
        torch.zeros_like(key, dtype=working),
        torch.zeros_like(value, dtype=working),
        *(
            torch.zeros_like(tensor, dtype=working) if tensor is not None and want else None
            for tensor, want in zip((extras.mask, extras.alibi, extras.sinks), wanted, strict=True)
        ),
    )
    delta = (grad_out.to(working) * out.to(working)).sum(-1)
    delta = delta if grad_lse is None else delta - grad_lse
    # A row that saw nothing has lse = -inf; its weights are 0, not exp(-inf + inf).
    base = lse.masked_fill(lse == -torch.inf, 0.0)
    if nothing_seen and sums.sinks is not None and grad_lse is not None:
        sums.sinks.add_(grad_lse.sum((0, 2)))  # the sink is all there is: lse = sink
    for piece in () if nothing_seen else pieces(problem, extras):
        if sums.sinks is not None and extras.sinks is not None:
            weights = (extras.sinks[piece.heads, None] - base[piece.rows]).exp()
            weights = weights.masked_fill_(lse[piece.rows] == -torch.inf, 0.0)  # the sink of this head is -inf
            sums.sinks[piece.heads] -= (weights * delta[piece.rows]).sum((0, 2))
        if piece.keys.start < piece.keys.stop:
            _add_piece(sums, grad_out, query, key, value, base, delta, problem, extras, piece)
    return Gradients(
        sums.query,
        torch.empty_like(key).copy_(sums.key),
        torch.empty_like(value).copy_(sums.value),
        None if sums.mask is None or extras.mask is None else sums.mask.to(extras.mask.dtype),
        sums.alibi,  # slopes and sinks have lse's dtype
        sums.sinks,
    )


def _add_piece(
    sums: Gradients,
    grad_out: torch.Tensor,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    base: torch.Tensor,
    delta: torch.Tensor,
    problem: AttentionProblem,
    extras: Extras,
    piece: Piece,
) -> None:
    working = base.dtype
    scores = scores_of(query, key, problem, extras, piece, working)
    shape = scores.values.shape
    weights = scores.values.sub_(piece.grouped(base, working)[..., None]).exp_()
    d_out = piece.grouped(grad_out, working).flatten(2, 3)
    sums.value[piece.columns] += weights.flatten(2, 3).transpose(-1, -2) @ d_out
    d_weights = (d_out @ piece.keyed(value, working)[:, :, 0].transpose(-1, -2)).view(shape)
    d_scores = weights * (d_weights - piece.grouped(delta, working)[..., None])
    if sums.mask is not None:
        part = piece.of_mask(sums.mask)
        part += d_scores.flatten(1, 2).sum_to_size(part.shape)
    if sums.alibi is not None and scores.distance is not None:
        part = piece.of_slopes(sums.alibi)
        part -= (d_scores * scores.distance).sum((-1, -2)).flatten(1, 2).sum_to_size(part.shape)
    if scores.tanh is not None:
        d_scores = d_scores * (1.0 - scores.tanh.square())
    d_products = d_scores.flatten(2, 3).mul_(problem.softmax_scale)
    sums.key[piece.columns] += d_products.transpose(-1, -2) @ piece.grouped(query, working).flatten(2, 3)
    d_query = (d_products @ piece.keyed(key, working)[:, :, 0]).view(*shape[:4], -1)
    sums.query[piece.rows] = d_query.flatten(1, 2).to(query.dtype)
