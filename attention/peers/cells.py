"""What is compared: a grid of 16,384 tokens at hidden size 2048, the field's custom, and ten cells off that grid."""

from dataclasses import dataclass, replace
from itertools import product
from typing import Any

from attention.problem import AttentionProblem

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
    def flops(self) -> float:
        """4*B*H*Sq*Skv*D, halved for causal; packed, the sum over sequences; with a window, the scores seen."""
        if not self.lengths:
            return self.problem.flops
        one = (self._sequence(length) for length in self.lengths)
        return sum(problem.flops for problem in one)

    def _sequence(self, length: int) -> AttentionProblem:
        return replace(
            self.problem, batch=1, seq_q=length, seq_kv=length, varlen=False, tokens_q=0, tokens_kv=0, scale=None
        )


@dataclass(frozen=True)
class Tensors:
    """N(0, 1), as a projection writes them: (B, S, H, D) in memory, seen as (B, H, S, D); packed, B is 1."""

    query: Any
    key: Any
    value: Any
    starts: Any | None  # (sequences + 1,) int32, where packed


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


def tensors(cell: Cell, device: Any, seed: int = 0) -> Tensors:
    """The inputs of a cell."""
    import torch

    generator = torch.Generator(device).manual_seed(seed)
    problem = cell.problem
    batch, rows = (1, sum(cell.lengths)) if cell.lengths else (problem.batch, problem.seq_q)
    dtype = getattr(torch, problem.dtype)

    def normal(heads: int) -> Any:
        shape = (batch, rows, heads, problem.head_dim)
        return torch.randn(shape, generator=generator, device=device, dtype=dtype).transpose(1, 2)

    starts = torch.tensor((0, *cell.lengths), device=device).cumsum(0).int() if cell.lengths else None
    return Tensors(normal(problem.heads_q), normal(problem.heads_kv), normal(problem.heads_kv), starts)


def _problem(
    batch: int, heads_q: int, heads_kv: int, length: int, dim: int, dtype: str = "bfloat16", **features: Any
) -> AttentionProblem:
    return AttentionProblem(batch, heads_q, heads_kv, length, length, dim, dtype=dtype, device="cuda", **features)
