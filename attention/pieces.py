"""The slow path's pieces: some rows of some heads of one sequence, with the keys that the band lets them see.

A piece has at most PIECE_SCORES scores, so that memory grows with the sequences, not with their product. Forward and
backward build a piece's scores by the same function.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import torch

from attention.extras import Extras
from attention.problem import AttentionProblem

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

    def of_mask(self, mask: torch.Tensor) -> torch.Tensor:
        """The part of a mask (B, Hq, Sq, Skv), any of them 1, that falls on this piece: a view."""
        places = (self.batch, self.heads, self.queries, self.keys)
        return mask[tuple(place if size > 1 else slice(None) for place, size in zip(places, mask.shape, strict=True))]

    def of_slopes(self, slopes: torch.Tensor) -> torch.Tensor:
        """The part of (H,) or (B, H) slopes that falls on this piece: (1 or b, heads), a view."""
        rows = slopes[None] if slopes.dim() == 1 else slopes
        return rows[self.sequences if len(rows) > 1 else slice(None), self.heads]


@dataclass(frozen=True)
class Scores:
    """Scores (b, kv heads, group, rows, keys), and what gradients need of the way there."""

    values: torch.Tensor
    tanh: torch.Tensor | None  # of score / softcap
    distance: torch.Tensor | None  # of ALiBi, (rows, keys)


def scores_of(
    query: torch.Tensor,
    key: torch.Tensor,
    problem: AttentionProblem,
    extras: Extras,
    piece: Piece,
    dtype: torch.dtype,
) -> Scores:
    """A piece's scores with scale, softcap, ALiBi, mask and band, in this order."""
    q, k = piece.grouped(query, dtype), piece.keyed(key, dtype)
    kv_heads, rows, keys = q.shape[1], q.shape[3], k.shape[3]
    # One product for each key head: the group's rows lie one after another.
    scores = (q.flatten(2, 3) @ k[:, :, 0].transpose(-1, -2)).mul_(problem.softmax_scale)
    scores = split(scores, 2, q.shape[2])
    i = torch.arange(piece.first_query, piece.first_query + rows, device=query.device)[:, None]
    j = torch.arange(piece.first_key, piece.first_key + keys, device=query.device)
    tanh = distance = None
    if problem.softcap:
        tanh = (scores / problem.softcap).tanh_()
        scores = tanh * problem.softcap
    if extras.alibi is not None:
        distance = (i + (piece.seq_kv - piece.seq_q) - j).abs().to(dtype)
        slopes = split(piece.of_slopes(extras.alibi).to(dtype), 1, kv_heads)
        scores = scores - slopes[..., None, None] * distance
    if extras.mask is not None:
        mask = piece.of_mask(extras.mask)
        mask = split(mask, 1, kv_heads) if mask.shape[1] > 1 else mask.unsqueeze(1)
        scores = scores.masked_fill(~mask, -torch.inf) if mask.dtype == torch.bool else scores + mask.to(dtype)
    band = problem.band(piece.seq_q, piece.seq_kv)
    if band.right is not None:
        scores = scores.masked_fill_(j > i + band.right, -torch.inf)
    if band.left is not None:
        scores = scores.masked_fill_(j < i + band.left, -torch.inf)
    return Scores(scores, tanh, distance)


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
    band = problem.band(seq_q, seq_kv)
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
