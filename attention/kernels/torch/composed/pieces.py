"""The slow path's pieces: some rows of some heads of one sequence, with the keys that the band lets them see.

A piece has at most PIECE_SCORES scores, so that memory grows with the sequences, not with their product. Forward and
backward build a piece's scores by the same function.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import reduce
from typing import Any

import torch

from attention.band import Band
from attention.call import Extras
from attention.feature import At, Operand
from attention.features import FEATURES
from attention.problem import AttentionProblem

Operands = tuple[tuple[torch.Tensor | None, ...], ...]  # of each feature
OPEN = Band()
PIECE_SCORES = 1 << 22  # 16 MiB of float32; a single row of one head is never cut


@dataclass(frozen=True)
class Piece:
    """Where a piece lies in the tensors, and where in its sequence it begins."""

    sequences: slice  # of the batch of the problem; `batch` is that of the tensors, 1 for packed sequences
    batch: slice
    heads: slice
    kv_heads: slice
    queries: slice
    keys: slice
    first_query: int
    first_key: int
    seq_q: int
    seq_kv: int

    @property
    def rows(self) -> tuple[slice, slice, slice]:
        """Its place in (B, Hq, Sq, ...)."""
        return self.batch, self.heads, self.queries

    @property
    def columns(self) -> tuple[slice, slice, slice]:
        """Its place in (B, Hkv, Skv, ...)."""
        return self.batch, self.kv_heads, self.keys

    def grouped(self, tensor: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
        """(B, Hq, Sq, ...) -> (b, kv heads, group, rows, ...)."""
        return split(tensor[self.rows].to(dtype), 1, self.kv_heads.stop - self.kv_heads.start)

    def keyed(self, tensor: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
        """(B, Hkv, Skv, D) -> (b, kv heads, 1, keys, D), to be shared by a group."""
        return tensor[self.columns].to(dtype).unsqueeze(2)

    def part(self, operand: Operand, tensor: torch.Tensor) -> torch.Tensor:
        """What of an operand falls on this piece: a view that broadcasts to (b, kv heads, group, rows, keys).

        The caller's tensor, with sizes of 1 and without axes in front where it has none. One without queries and keys
        has a batch of sequences, where the others have that of the packed rows.
        """
        whole = with_every_axis(operand, tensor)
        batch = self.batch if {"q", "k"} & set(operand.axes) else self.sequences
        places = (batch, self.heads, self.queries, self.keys)
        some = whole[tuple(at if size > 1 else slice(None) for at, size in zip(places, whole.shape, strict=True))]
        return split(some, 1, self.kv_heads.stop - self.kv_heads.start) if some.shape[1] > 1 else some.unsqueeze(1)

    def at(self, device: torch.device) -> At:
        """Where its scores lie."""
        rows, keys = self.queries.stop - self.queries.start, self.keys.stop - self.keys.start
        i = torch.arange(self.first_query, self.first_query + rows, device=device)[:, None]
        j = torch.arange(self.first_key, self.first_key + keys, device=device)
        return At(i, j, self.seq_q, self.seq_kv)


@dataclass(frozen=True)
class Scores:
    """Scores (b, kv heads, group, rows, keys), and what gradients need of the way there, for each feature."""

    values: torch.Tensor
    at: At
    operands: Operands
    kept: tuple[Any, ...]


def with_every_axis(operand: Operand, tensor: torch.Tensor) -> torch.Tensor:
    """(B, Hq, Sq, Skv), with 1 where it has no such axis: a view."""
    given = operand.axes[len(operand.axes) - tensor.dim() :]
    return tensor[tuple(slice(None) if axis in given else None for axis in "bhqk")]


def operands_of(extras: Extras, piece: Piece | None, dtype: torch.dtype) -> Operands:
    """The operands of each feature, as a piece's scores need them, or with every axis where there is no piece."""
    tensors = iter(extras)
    found = []
    for feature in FEATURES:
        own: list[torch.Tensor | None] = []
        for operand in feature.operands:
            tensor = next(tensors)
            if tensor is not None:
                tensor = with_every_axis(operand, tensor) if piece is None else piece.part(operand, tensor)
                tensor = tensor.to(dtype) if tensor.is_floating_point() else tensor
            own.append(tensor)
        found.append(tuple(own))
    return tuple(found)


def scores_of(
    query: torch.Tensor,
    key: torch.Tensor,
    problem: AttentionProblem,
    extras: Extras,
    piece: Piece,
    dtype: torch.dtype,
) -> Scores:
    """A piece's scores with scale and features: changed by each in turn, then hidden."""
    q, k = piece.grouped(query, dtype), piece.keyed(key, dtype)
    # One product for each key head: the group's rows lie one after another.
    scores = (q.flatten(2, 3) @ k[:, :, 0].transpose(-1, -2)).mul_(problem.softmax_scale)
    scores = split(scores, 2, q.shape[2])
    operands = operands_of(extras, piece, dtype)
    at = placed(piece.at(query.device), operands)
    kept = []
    for feature, own in zip(FEATURES, operands, strict=True):
        scores, left = feature.change(scores, at, problem, *own)
        kept.append(left)
    for feature, own in zip(FEATURES, operands, strict=True):
        hidden = feature.hide(at, problem, *own)
        scores = scores if hidden is None else scores.masked_fill(hidden, -torch.inf)
    return Scores(scores, at, operands, tuple(kept))


def placed(at: At, operands: Operands) -> At:
    """Where scores lie, by what the operands say of the rows that are used."""
    return reduce(lambda found, pair: pair[0].where(found, *pair[1]), zip(FEATURES, operands, strict=True), at)


def logits_of(operands: Operands, at: At | None = None) -> Iterator[tuple[int, torch.Tensor]]:
    """What joins the denominators beside the scores: the number of its feature, and logits (..., rows or 1).

    `at`: of these scores, where it is of use to know which rows none joins.
    """
    unused = None if at is None else at.unused
    for number, (feature, own) in enumerate(zip(FEATURES, operands, strict=True)):
        if feature.logit and own[0] is not None:
            logit = own[0] if unused is None else torch.where(unused, -torch.inf, own[0])
            yield number, logit[..., 0]


def split(tensor: torch.Tensor, dim: int, count: int) -> torch.Tensor:
    """One dimension as two, the first of them of `count`: a view."""
    shape = tensor.shape
    return tensor.view(*shape[:dim], count, shape[dim] // count, *shape[dim + 1 :])


def pieces(problem: AttentionProblem, extras: Extras) -> Iterator[Piece]:
    """Every piece of a problem once: all rows of out, and none twice. Packed lengths are read on the host."""
    if not problem.varlen:
        batch = slice(0, problem.batch)
        yield from _of_sequences(problem, batch, batch, (0, problem.seq_q), (0, problem.seq_kv))
        return
    assert extras.cu_seqlens_q is not None and extras.cu_seqlens_k is not None
    starts_q, starts_k = extras.cu_seqlens_q.tolist(), extras.cu_seqlens_k.tolist()
    for at in range(len(starts_q) - 1):  # none at all counts as a batch of 1 in the problem
        lengths = (starts_q[at], starts_q[at + 1]), (starts_k[at], starts_k[at + 1])
        yield from _of_sequences(problem, slice(at, at + 1), slice(0, 1), *lengths)


def _of_sequences(
    problem: AttentionProblem, sequences: slice, batch: slice, queries: tuple[int, int], keys: tuple[int, int]
) -> Iterator[Piece]:
    """Sequences of the same lengths, which begin at the same rows of their tensors."""
    seq_q, seq_kv = queries[1] - queries[0], keys[1] - keys[0]
    group = problem.heads_q // problem.heads_kv
    band = OPEN if problem.ranges else problem.band(seq_q, seq_kv)  # where it lies is not known on the host
    row = max(1, seq_kv) * group
    rows = min(max(1, PIECE_SCORES // row), max(1, seq_q))
    heads = min(max(1, PIECE_SCORES // (row * rows)), problem.heads_kv)
    count = max(1, PIECE_SCORES // (row * rows * heads)) if heads == problem.heads_kv else 1
    for first in range(sequences.start, sequences.stop, count):
        some = slice(first, min(first + count, sequences.stop))
        for head in range(0, problem.heads_kv, heads):
            kv_heads = slice(head, min(head + heads, problem.heads_kv))
            for start in range(0, seq_q, rows):
                end = min(start + rows, seq_q)
                begin_key = 0 if band.left is None else min(seq_kv, max(0, start + band.left))
                end_key = seq_kv if band.right is None else max(begin_key, min(seq_kv, end + band.right))
                yield Piece(
                    sequences=some,
                    batch=batch if problem.varlen else some,
                    heads=slice(kv_heads.start * group, kv_heads.stop * group),
                    kv_heads=kv_heads,
                    queries=slice(queries[0] + start, queries[0] + end),
                    keys=slice(keys[0] + begin_key, keys[0] + end_key),
                    first_query=start,
                    first_key=begin_key,
                    seq_q=seq_q,
                    seq_kv=seq_kv,
                )
