"""What is compared: 16,384 tokens at hidden size 2048, the field's custom; ten cells off that grid; few queries.

Cells of few queries are for the chooser: a decoder's steps, and some drafted tokens at once.
"""

from dataclasses import dataclass, replace
from itertools import product
from typing import Any

from attention.call import NO_EXTRAS, Extras, Tensors
from attention.problem import AttentionProblem
from attention.variant import FEW_QUERIES

TOKENS, HIDDEN = 16384, 2048
DIMS, SEQUENCES = (64, 128, 256), (1024, 4096, 16384)


@dataclass(frozen=True)
class Cell:
    """One problem. Packed sequences have `lengths`, of queries and keys alike; `grid` tells which floor holds."""

    problem: AttentionProblem
    lengths: tuple[int, ...] = ()
    grid: bool = False

    def __str__(self) -> str:
        return str(self.problem)

    @property
    def few(self) -> bool:
        """Whether it has so few queries that keys must be split to fill a GPU."""
        return self.problem.seq_q <= FEW_QUERIES

    @property
    def flops(self) -> float:
        """4*B*H*Sq*Skv*D, halved for causal; packed, the sum over sequences; with a window, the scores seen."""
        if not self.lengths:
            return self.problem.flops
        one = (self._sequence(length) for length in self.lengths)
        return sum(problem.flops for problem in one)

    @property
    def first(self) -> AttentionProblem:
        """The problem of the first packed sequence; where there are none, the problem itself."""
        return self._sequence(self.lengths[0]) if self.lengths else self.problem

    def _sequence(self, length: int) -> AttentionProblem:
        return replace(
            self.problem, batch=1, seq_q=length, seq_kv=length, varlen=False, tokens_q=0, tokens_kv=0, scale=None
        )


def grid() -> tuple[Cell, ...]:
    """Head dim x mask x sequence length, bf16."""
    return tuple(
        Cell(_problem(TOKENS // length, HIDDEN // dim, HIDDEN // dim, length, dim, causal=causal), grid=True)
        for dim, causal, length in product(DIMS, (False, True), SEQUENCES)
    )


def off_grid() -> tuple[Cell, ...]:
    """Odd lengths, grouped heads, packed sequences and windows."""
    lengths = (4096, 512, 2048, 1024, 3000, 128, 1500, 2560, 1516)  # 16,384 rows
    longest = max(lengths)

    def packed(heads: int, dim: int, causal: bool) -> Cell:
        problem = _problem(
            *(len(lengths), heads, heads, longest, dim),
            causal=causal,
            varlen=True,
            tokens_q=sum(lengths),
            tokens_kv=sum(lengths),
            alignment="bottom_right",
        )
        return Cell(problem, lengths)

    return (
        Cell(_problem(5, 16, 16, 3000, 128)),
        Cell(_problem(5, 16, 16, 3000, 128, causal=True)),
        Cell(_problem(5, 32, 32, 3000, 64, causal=True)),
        Cell(_problem(4, 32, 4, 4096, 128, causal=True)),
        Cell(_problem(4, 32, 4, 4096, 64)),
        packed(16, 128, causal=True),
        packed(32, 64, causal=False),
        Cell(_problem(2, 16, 16, 8192, 128, causal=True, window=(1024, -1))),
        Cell(_problem(2, 32, 32, 8192, 64, causal=True, window=(1024, -1))),
        Cell(_problem(4, 16, 16, 4096, 128, dtype="float16")),
    )


def few_queries() -> tuple[Cell, ...]:
    """One and sixteen queries on caches of 128 to 65,536 keys, for 1, 16 and 64 sequences, grouped and not."""
    heads = ((32, 8, 64), (32, 8, 128), (16, 16, 128), (8, 1, 256))
    sizes = ((1, 128), (1, 1024), (1, 8192), (1, 65536), (16, 1024), (16, 8192), (64, 4096))
    return tuple(
        Cell(AttentionProblem(batch, heads_q, heads_kv, queries, keys, dim, dtype="bfloat16", device="cuda"))
        for heads_q, heads_kv, dim in heads
        for queries in (1, 16)
        for batch, keys in sizes
        if batch * keys * heads_kv * dim <= 1 << 28
    ) + tuple(
        Cell(AttentionProblem(batch, 32, 8, queries, keys, 128, dtype="bfloat16", device="cuda"))
        for batch, queries, keys in ((1, 64, 8192), (1, 128, 32768), (8, 64, 8192), (16, 128, 2048))
    )


def tensors(cell: Cell, device: Any, seed: int = 0) -> Tensors:
    """N(0, 1), as a projection writes them: (B, S, H, D) in memory, seen as (B, H, S, D); packed, B is 1."""
    import torch

    generator = torch.Generator(device).manual_seed(seed)
    problem = cell.problem
    batch = 1 if cell.lengths else problem.batch
    queries, keys = (sum(cell.lengths),) * 2 if cell.lengths else (problem.seq_q, problem.seq_kv)
    dtype = getattr(torch, problem.dtype)

    def normal(heads: int, rows: int) -> Any:
        shape = (batch, rows, heads, problem.head_dim)
        return torch.randn(shape, generator=generator, device=device, dtype=dtype).transpose(1, 2)

    starts = torch.tensor((0, *cell.lengths), device=device).cumsum(0).int() if cell.lengths else None
    query, key, value = (
        normal(heads, rows)
        for heads, rows in ((problem.heads_q, queries), (problem.heads_kv, keys), (problem.heads_kv, keys))
    )
    extras = NO_EXTRAS if starts is None else Extras(cu_seqlens_q=starts, cu_seqlens_k=starts)
    return Tensors(query, key, value, extras)


def _problem(
    batch: int, heads_q: int, heads_kv: int, length: int, dim: int, dtype: str = "bfloat16", **features: Any
) -> AttentionProblem:
    return AttentionProblem(batch, heads_q, heads_kv, length, length, dim, dtype=dtype, device="cuda", **features)
