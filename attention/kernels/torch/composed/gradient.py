"""The backward: correct on every device and for every feature, in torch operations; slow beside a fused kernel.

    P = exp(S - lse)      dV = P^T dO     dP = dO V^T    D = rowsum(dO * out) - dlse     dS = P * (dP - D)
    dmask = dS            dslope = -sum(dS * |i + Skv - Sq - j|)       dsink = -sum(exp(sink - lse) * D)
    dT = dS * (1 - tanh^2) with softcap, else dS                       dQ = scale dT K             dK = scale dT^T Q

Scores are recomputed piece by piece, so that memory grows with the sequence, not with its square.
"""

from collections.abc import Sequence

import torch

from attention.call import Extras
from attention.features import FEATURES
from attention.forwarded import Gradients
from attention.kernels.torch.composed.pieces import (
    Operands,
    Piece,
    logits_of,
    operands_of,
    pieces,
    scores_of,
    with_every_axis,
)
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
    wanted: Sequence[bool],
    nothing_seen: bool = False,
) -> Gradients:
    """Gradients of every input. `extras` are not expanded here; `wanted`: of each operand.

    `grad_lse`: None where nothing depends on lse.
    `nothing_seen`: there are no queries, or no keys, and sizes of 0 that a problem cannot say.
    """
    working = lse.dtype
    sums = Gradients(
        torch.zeros_like(query),
        torch.zeros_like(key, dtype=working),
        torch.zeros_like(value, dtype=working),
        Extras(
            *(
                torch.zeros_like(tensor, dtype=working) if tensor is not None and want else None
                for tensor, want in zip(extras, wanted, strict=False)
            )
        ),
    )
    delta = (grad_out.to(working) * out.to(working)).sum(-1)
    delta = delta if grad_lse is None else delta - grad_lse
    if nothing_seen:  # the logits without a value are all there is
        _add_logits(sums, operands_of(extras, None, working), lse, delta, None)
    for piece in () if nothing_seen else pieces(problem, extras):
        _add_logits(sums, operands_of(extras, piece, working), lse, delta, piece)
        if piece.keys.start < piece.keys.stop:
            _add_piece(sums, grad_out, query, key, value, lse, delta, problem, extras, piece)
    return Gradients(
        sums.query,
        torch.empty_like(key).copy_(sums.key),
        torch.empty_like(value).copy_(sums.value),
        Extras(
            *(
                None if total is None or tensor is None else total.to(tensor.dtype)
                for total, tensor in zip(sums.operands, extras, strict=True)
            )
        ),
    )


def logit_gradient(logit: torch.Tensor, lse: torch.Tensor, delta: torch.Tensor) -> torch.Tensor:
    """-exp(logit - lse) * D: a logit takes weight from its row, and gives no value. 0 where the row saw nothing."""
    return -((logit - lse).exp() * delta).masked_fill(lse == -torch.inf, 0.0)


def _add_logits(
    sums: Gradients,
    operands: Operands,
    lse: torch.Tensor,
    delta: torch.Tensor,
    piece: Piece | None,
) -> None:
    rows, deltas = (each if piece is None else piece.grouped(each, each.dtype) for each in (lse, delta))
    for number, logit in logits_of(operands):
        (operand,), total = FEATURES[number].operands, _totals(sums, number)[0]
        if total is not None:
            part = with_every_axis(operand, total) if piece is None else piece.part(operand, total)
            part += logit_gradient(logit, rows, deltas)[..., None].sum_to_size(part.shape)


def _totals(sums: Gradients, number: int) -> tuple[torch.Tensor | None, ...]:
    """The sums of a feature's operands; None where no gradient is wanted."""
    first = sum(len(feature.operands) for feature in FEATURES[:number])
    return sums.operands[first : first + len(FEATURES[number].operands)]


def _add_piece(
    sums: Gradients,
    grad_out: torch.Tensor,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    lse: torch.Tensor,
    delta: torch.Tensor,
    problem: AttentionProblem,
    extras: Extras,
    piece: Piece,
) -> None:
    working = lse.dtype
    scores = scores_of(query, key, problem, extras, piece, working)
    shape = scores.values.shape
    # A row that saw nothing has lse = -inf; its weights are 0, not exp(-inf + inf).
    base = piece.grouped(lse, working)
    base = base.masked_fill(base == -torch.inf, 0.0)
    weights = scores.values.sub_(base[..., None]).exp_()
    d_out = piece.grouped(grad_out, working).flatten(2, 3)
    sums.value[piece.columns] += weights.flatten(2, 3).transpose(-1, -2) @ d_out
    d_weights = (d_out @ piece.keyed(value, working)[:, :, 0].transpose(-1, -2)).view(shape)
    d_scores = weights * (d_weights - piece.grouped(delta, working)[..., None])
    for number in reversed(range(len(FEATURES))):
        feature, totals = FEATURES[number], _totals(sums, number)
        given = (d_scores, scores.kept[number], scores.at, problem, *scores.operands[number])
        if any(total is not None for total in totals):
            for total, operand, found in zip(totals, feature.operands, feature.operand_gradients(*given), strict=True):
                if total is not None and found is not None:
                    part = piece.part(operand, total)
                    part += found.sum_to_size(part.shape)
        d_scores = feature.gradient(*given)
    d_products = d_scores.flatten(2, 3).mul_(problem.softmax_scale)
    sums.key[piece.columns] += d_products.transpose(-1, -2) @ piece.grouped(query, working).flatten(2, 3)
    d_query = (d_products @ piece.keyed(key, working)[:, :, 0]).view(*shape[:4], -1)
    sums.query[piece.rows] = d_query.flatten(1, 2).to(query.dtype)
