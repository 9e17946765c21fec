"""Classes of lengths: one choice serves all problems of a class, and a growing cache chooses no kernel anew.

Lengths, packed rows and batches are rounded up to eighths of an octave. Lengths of many queries on a GPU are rounded
less, to 64 rows or a 32nd: 3261 causal tokens are 17 tiles of 192 rows, and 3328 are 18. Of 1230 such calls of use
98.0 % were within 3 % of the best by eighths, 98.6 % so, 98.9 % by 64ths, and 99.2 % by the length itself (an H200's
sets of use 22 to 30, each by the timings of the others). A tile more or less decides nothing that `smscope tune`
timed: its classes are the `broad` ones.

Few queries on a GPU have classes of their own, and so few that a cache grows by them, token by token, two classes of
keys an octave: on 52 such problems of use 92 % of the choices were within 3 % of the best where each problem was its
own class, 90 % so, 71 % with two classes of keys in all, and 85 % with one an octave (the set of use 1, with its own
timings).

The representative keeps everything that decides what is legal: features, edges, and whether it is a square. No length
decides which features are asked for.
"""

from collections.abc import Callable
from dataclasses import fields, replace
from operator import attrgetter
from typing import Any

from attention.problem import LARGEST, AttentionProblem
from attention.variant import FEW_QUERIES

EIGHTHS, HALVES = 8, 2
FINE, FINEST_ROWS = 32, 64  # of many queries: parts of an octave, and rows of a tile's warpgroup
QUERIES_OF_FEW = (1, 2, 4, 8, 16, 64, FEW_QUERIES)
OF_A_CACHE = 16  # queries at most: a token, or a draft of some. 128 queries of as many keys are no step of decoding
LEAST_KEYS = 128  # of a cache: below, a call is its launch
# A window before a round number of keys would be whole tiles, where nearly every window begins and ends within one:
# half a tile of the smallest, and a key.
UNALIGNED = 33
ROUNDED = ("batch", "seq_q", "seq_kv", "tokens_q", "tokens_kv")
MOST_KEPT = 4096
_unrounded = attrgetter(*(each.name for each in fields(AttentionProblem) if each.name not in ROUNDED))
# By all that a representative follows from, which is less work to look up than to make; None where it is no class.
_of_class: dict[tuple[Any, ...], AttentionProblem | None] = {}


def representative(problem: AttentionProblem) -> AttentionProblem:
    """The problem whose choice serves this one."""
    return _standing_for(problem, finely if problem.device == "cuda" else rounded)


def broad(problem: AttentionProblem) -> AttentionProblem:
    """The problem whose timings by `smscope tune` serve this one, and all that its representative serves."""
    return _standing_for(problem, rounded)


def _standing_for(problem: AttentionProblem, of_length: Callable[[int], int]) -> AttentionProblem:
    few = problem.device == "cuda" and not problem.varlen and problem.seq_q <= FEW_QUERIES
    if few:
        seq_q, of_length = next(size for size in QUERIES_OF_FEW if problem.seq_q <= size), rounded
    else:
        seq_q = of_length(problem.seq_q)
    if few and problem.seq_q <= OF_A_CACHE:
        seq_kv = max(LEAST_KEYS, rounded(problem.seq_kv, HALVES)) - (UNALIGNED if problem.edges.left is not None else 0)
    else:
        seq_kv = of_length(problem.seq_kv)
        if seq_kv == seq_q and problem.seq_kv != problem.seq_q:
            seq_kv = of_length(seq_kv + 1)
    packed = problem.varlen
    sizes = (
        rounded(problem.batch),
        seq_q,
        seq_kv,
        rounded(problem.tokens_q) if packed else 0,
        rounded(problem.tokens_kv) if packed else 0,
    )
    kind = sizes, _unrounded(problem), problem.seq_q == problem.seq_kv
    if kind not in _of_class:
        if len(_of_class) >= MOST_KEPT:
            _of_class.clear()
        changes: dict[str, Any] = dict(zip(ROUNDED, sizes, strict=True))
        found = replace(problem, **changes)
        _of_class[kind] = found if _alike(found, problem) else None
    return _of_class[kind] or problem


def rounded(size: int, parts: int = EIGHTHS) -> int:
    """Up to the next part of an octave: 9 values from 1024 to 2048; sizes up to twice as many are themselves.

    The last value is the largest that a problem may have, just below an octave's end.
    """
    return _up(size, _step(size, parts))


def finely(size: int) -> int:
    """Up to the next 32nd of an octave, but no finer than to 64 rows where eighths are that fine."""
    return _up(size, min(_step(size, EIGHTHS), max(FINEST_ROWS, _step(size, FINE))))


def _step(size: int, parts: int) -> int:
    return 1 << max(0, size.bit_length() - parts.bit_length())


def _up(size: int, step: int) -> int:
    return min(LARGEST, -(-size // step) * step)


def _alike(one: AttentionProblem, other: AttentionProblem) -> bool:
    """Whether the same kernels may serve both: a window wider than the keys is none, a square is aligned both ways."""
    square = one.seq_q == one.seq_kv, other.seq_q == other.seq_kv
    return (one.features, one.edges) == (other.features, other.edges) and (one.edges.open or square[0] == square[1])
