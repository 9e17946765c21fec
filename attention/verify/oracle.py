"""What a forward should give, in torch on any device: in double precision, and as low precision can do it.

A result is judged by oracle.reference's rule over the whole tensor, and by the same rule over every 64 rows of a
head: the first rows of a causal problem are as large as V, and beside them late ones, which average thousands of
values, could be wrong altogether.

Whole blocks may be smaller than float32 can hold: under a sink, keys 800 steps of ALiBi away weigh exp(-800). Hence
both rules also allow what is lost where weights below FLUSHED become 0: the sum of min(weight, FLUSHED) |v| of a row.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import reduce

import torch

from attention.call import Tensors
from attention.feature import At
from attention.features import OPERANDS
from attention.kernels.torch.composed.pieces import with_every_axis
from attention.oracle.reference import ERROR_FACTOR, ROUNDING_UNIT, scored
from attention.problem import AttentionProblem
from attention.variant import by_path
from attention.verify.problems import Case

BLOCK = 64  # rows judged together: so many errors of the low-precision result have a largest one worth comparing with
# A kernel may take a smaller weight for 0. exp2 gives 0 below 2^-126 (ex2.approx.ftz, PTX ISA), the smallest normal
# float32, and counts from an offset that may lie 2^8 below the largest score of the row.
FLUSHED = 2.0**-118
# Of the largest term that enters a row's lse: exp2 and log2 are approximate, by 2 ulp or 2^-22 of p, and sums are those
# of float32. n additions are off by some sqrt(n) 2^-24 where rounding errors are as good as independent (Higham and
# Mary, A new approach to probabilistic rounding error analysis, 2019): 2^-18 for 4096 keys, whose logarithm makes the
# term larger. An online softmax of 4224 keys uses less than a quarter of it (tests/cpu/test_lse_tolerance.py).
LSE_UNIT = 2.0**-18
# Tensor cores add the products of one instruction's K to a sum, and truncate it: 2^-23 of it, which |q| |k| bounds.
STEP_UNIT = 2.0**-23
STEP, STEP_OF = 16, {"sm70": 4, "sm75": 8}  # m16n8k16 and later; m8n8k4, and m16n8k8 of float16


@dataclass(frozen=True)
class Expected:
    """Right results.

    out    (B, H, S, D)
    lse    (B, H, S)
    size   of a row's terms (B, H, S): its largest output, or the root of the sum of (p v)^2, by which errors of p are
           felt where outputs cancel
    lost   what a row loses by FLUSHED (B, H, S)
    terms  of a row's keys that are seen the largest sum of |scale q k| over the head dim (B, H, S)
    """

    out: torch.Tensor
    lse: torch.Tensor
    size: torch.Tensor
    lost: torch.Tensor
    terms: torch.Tensor


def attention(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    problem: AttentionProblem,
    operands: dict[str, torch.Tensor | None],
    exact: bool,
) -> Expected:
    """`exact`: in float64. Else as a kernel may: scores and softmax in float32, P, V and out in the inputs' dtype.

    `operands` have every axis, (batch, head, query, key).
    """
    dtype, working = query.dtype, torch.float64 if exact else torch.float32
    if problem.ranges:  # a row that is not used may be NaN, and 0 times that is no 0
        query, key, value = (each.nan_to_num(0.0) for each in (query, key, value))
    rows, keys, group = query.shape[2], key.shape[2], query.shape[1] // key.shape[1]
    key, value = key.repeat_interleave(group, 1), value.repeat_interleave(group, 1)
    scores = (query.to(working) @ key.to(working).transpose(-1, -2)).mul_(problem.softmax_scale)
    at = At(torch.arange(rows, device=query.device)[:, None], torch.arange(keys, device=query.device), rows, keys)
    wide = {
        name: tensor if tensor is None or tensor.dtype == torch.bool else tensor.to(working)
        for name, tensor in operands.items()
    }
    terms = (query.to(working).abs() @ key.to(working).abs().transpose(-1, -2)).mul_(abs(problem.softmax_scale))
    scores, logits = scored(torch, scores, at, problem, wide)
    terms.masked_fill_(scores == -math.inf, 0.0)
    lowest = torch.full(scores.shape[:-1], -math.inf, dtype=working, device=query.device)
    most = reduce(torch.maximum, (logit[..., 0] for logit in logits), scores.amax(-1) if keys else lowest)
    largest = terms.amax(-1) if keys else torch.zeros_like(lowest)
    base = most.masked_fill(most == -math.inf, 0.0)
    p = scores.sub(base[..., None]).exp_()
    total = sum(((logit[..., 0] - base).exp() for logit in logits), start=p.sum(-1))
    lse = base + total.log()
    p /= total.masked_fill(total == 0, 1.0)[..., None]
    if not exact:
        out = (p.to(dtype) @ value).to(working)
        return Expected(out, lse, out.abs().amax(-1), torch.zeros_like(lse), largest)
    value = value.to(working)
    out, lost = p @ value, (p.clamp(max=FLUSHED) @ value.abs()).amax(-1)
    spread = (p.square_() @ value.square()).sqrt_()
    return Expected(out, lse, torch.maximum(out.abs(), spread).amax(-1), lost, largest)


@dataclass(frozen=True)
class Piece:
    """A batch, or one packed sequence: rows of it, and what is asked of them."""

    out: torch.Tensor
    lse: torch.Tensor
    exact: Expected
    low: Expected


def pieces(case: Case, tensors: Tensors, out: torch.Tensor, lse: torch.Tensor) -> Iterator[Piece]:
    """Results beside what they should be. Rows of packed tensors that belong to no sequence are left out."""
    problem, extras = case.problem, tensors.extras

    def piece(at: slice, q: slice, k: slice, rows: int, keys: int) -> Piece:
        operands: dict[str, torch.Tensor | None] = {}
        for operand, tensor in zip(OPERANDS, extras, strict=False):
            whole = None if tensor is None else with_every_axis(operand, tensor)
            if whole is not None:
                places = (at, slice(None), slice(0, rows), slice(0, keys))
                sizes = zip(places, whole.shape, strict=True)
                whole = whole[tuple(place if size > 1 else slice(None) for place, size in sizes)]
            operands[operand.name] = whole
        given = tensors.query[:, :, q], tensors.key[:, :, k], tensors.value[:, :, k]
        exact, low = (attention(*given, problem, operands, exact) for exact in (True, False))
        return Piece(out[:, :, q], lse[:, :, q], exact, low)

    if not case.lengths:
        yield piece(slice(None), slice(None), slice(None), problem.seq_q, problem.seq_kv)
        return
    first_row = first_key = 0
    for number, (rows, keys) in enumerate(case.lengths):
        at, q, k = slice(number, number + 1), slice(first_row, first_row + rows), slice(first_key, first_key + keys)
        first_row, first_key = q.stop, k.stop
        if rows:
            yield piece(at, q, k, rows, keys)


@dataclass(frozen=True)
class Verdict:
    """error and allowed over the whole of out; the worst ratio of the two over blocks of rows; and of lse.

    A reason where a result is not what it should be, else ''.
    """

    error: float
    allowed: float
    block_ratio: float
    lse_ratio: float
    reason: str


def judge(case: Case, tensors: Tensors, out: torch.Tensor, lse: torch.Tensor) -> Verdict:
    """Hold out and lse against the oracle."""
    unit = ROUNDING_UNIT[case.problem.dtype]
    error = low_error = largest = lost = block_ratio = lse_ratio = 0.0
    reasons: dict[str, None] = {}
    for piece in pieces(case, tensors, out, lse):
        got, wide = piece.out.double(), piece.exact.out
        if not bool(torch.isfinite(got).all()):
            reasons[f"out is not finite at {int((~torch.isfinite(got)).sum())} places"] = None
        if not torch.equal(piece.lse == -math.inf, piece.exact.lse == -math.inf) or bool(torch.isnan(piece.lse).any()):
            reasons["lse is NaN, or infinite at other places"] = None
        off, low_off = (each.nan_to_num(torch.inf).sub(wide).abs().amax(-1) for each in (got, piece.low.out.double()))
        error, low_error = max(error, float(off.max())), max(low_error, float(low_off.max()))
        largest, lost = max(largest, float(wide.abs().max())), max(lost, float(piece.exact.lost.max()))
        blocks, *others = (_blocks(each) for each in (off, low_off, piece.exact.size, piece.exact.lost))
        low_blocks, sizes, lost_blocks = others
        block_ratio = max(block_ratio, _ratio(blocks, ERROR_FACTOR * low_blocks + unit * sizes + lost_blocks))
        lse_ratio = max(
            lse_ratio, _lse_ratio(piece, case.problem, STEP_OF.get(by_path(case.build.variant).archs[0], STEP))
        )
    allowed = ERROR_FACTOR * low_error + unit * largest + lost
    # Not 'error > allowed': a NaN must fail.
    if not error <= allowed:
        reasons[f"error {error:.3g} above {allowed:.3g}"] = None
    if not block_ratio <= 1:
        reasons[f"error of {BLOCK} rows is {block_ratio:.3g} times what is allowed"] = None
    if not lse_ratio <= 1:
        reasons[f"error of lse is {lse_ratio:.3g} times what is allowed"] = None
    return Verdict(error, allowed, block_ratio, lse_ratio, "; ".join(reasons))


def _blocks(rows: torch.Tensor) -> torch.Tensor:
    """The largest of every BLOCK rows: (..., S) -> (..., ceil(S / BLOCK))."""
    padded = torch.nn.functional.pad(rows, (0, -rows.shape[-1] % BLOCK))
    return padded.reshape(*padded.shape[:-1], padded.shape[-1] // BLOCK, BLOCK).amax(-1)


def _ratio(error: torch.Tensor, allowed: torch.Tensor) -> float:
    """The worst error over what is allowed; 0 / 0 is 0."""
    return float(torch.where(error == 0, 0.0, error / allowed).max())


def _lse_ratio(piece: Piece, problem: AttentionProblem, step: int) -> float:
    """Likewise of lse, row by row, where it is finite; the low-precision result's error is its largest one.

    An lse may be as wrong as the most wrong of its scores, which beside ALiBi or hidden keys may be far larger.
    """
    exact = piece.exact.lse
    finite = torch.isfinite(exact)
    size = exact.abs().clamp_min(max(1.0, problem.softcap))
    low_off = torch.where(finite, (piece.low.lse.double() - exact).abs() / size, 0.0).nan_to_num(torch.inf).max()
    allowed = (ERROR_FACTOR * low_off + LSE_UNIT) * size
    allowed += -(-problem.head_dim // step) * STEP_UNIT * piece.exact.terms
    return float(torch.where(finite, (piece.lse.double() - exact).abs() / allowed, 0.0).nan_to_num(torch.inf).max())
