"""Classes of lengths: one choice serves all problems of a class, and a growing cache chooses no kernel anew.

Lengths, packed rows and batches are rounded up to eighths of an octave. Lengths of many queries on a GPU are rounded
less, to a 32nd, but to no less than 64 queries and 16 keys: 3261 causal tokens are 17 tiles of 192 rows, and 3328 are
18; 333 keys are three tiles of 112, and 352 are four. Of 1312 such calls of use 98.0 % were within 3 % of the best by
eighths, 98.4 % with keys to 64 as well, 98.7 % so, and 99.2 % by the length itself (an H200's sets of use 22 to 31,
each by the timings of the others). Packed sequences have both to 64. A tile more or less decides nothing that `smscope
tune` timed: its classes are the `broad` ones.

Few queries on a GPU have classes of their own. So few that a cache grows by them, token by token, have classes of 16
keys up to 512, and beyond four an octave: of 462 such calls 85.9 % were within 3 % of the best so, 85.3 % by eighths,
and 85.1 % by halves. With a window, which sees as many keys of any cache, they have two an octave.

The representative keeps everything that decides what is legal: features, edges, and whether it is a square. No length
decides which features are asked for.
"""

from dataclasses import fields, replace
from operator import attrgetter
from typing import Any

from attention.problem import LARGEST, AttentionProblem
from attention.variant import FEW_QUERIES

EIGHTHS, QUARTERS, HALVES = 8, 4, 2
FINE, FINEST_ROWS, FINEST_KEYS = 32, 64, 16  # parts of an octave, rows of a warpgroup, and what all tiles of keys share
SHORT_CACHE = 512  # keys: up to so many a tile more or less is much of a call
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
    return _standing_for(problem, finely=problem.device == "cuda")


def broad(problem: AttentionProblem) -> AttentionProblem:
    """The problem whose timings by `smscope tune` serve this one, and all that its representative serves."""
    return _standing_for(problem, finely=False)


def _standing_for(problem: AttentionProblem, finely: bool) -> AttentionProblem:
    few = problem.device == "cuda" and not problem.varlen and problem.seq_q <= FEW_QUERIES
    window, square = problem.edges.left is not None, problem.seq_q == problem.seq_kv
    rows, keys = (FINEST_KEYS if square else FINEST_ROWS), FINEST_KEYS
    if problem.varlen:
        rows = keys = FINEST_ROWS
    if not finely:
        rows = keys = LARGEST
    seq_q = next(size for size in QUERIES_OF_FEW if problem.seq_q <= size) if few else _finely(problem.seq_q, rows)
    if few and problem.seq_q <= OF_A_CACHE:
        cached = _of_a_cache(problem.seq_kv) if finely and not window else rounded(problem.seq_kv, HALVES)
        seq_kv = max(LEAST_KEYS, cached) - (UNALIGNED if window else 0)
    else:
        seq_kv = _finely(problem.seq_kv, keys)
        if seq_kv == seq_q and not square:
            seq_kv = _finely(seq_kv + 1, keys)
    packed = problem.varlen
    sizes = (
        rounded(problem.batch),
        seq_q,
        seq_kv,
        rounded(problem.tokens_q) if packed else 0,
        rounded(problem.tokens_kv) if packed else 0,
    )
    kind = sizes, _unrounded(problem), square
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


def _finely(size: int, finest: int) -> int:
    """Up to a 32nd of an octave, but to no less than `finest`, and to no more than an eighth."""
    return _up(size, min(_step(size, EIGHTHS), max(finest, _step(size, FINE))))


def _of_a_cache(size: int) -> int:
    return _up(size, FINEST_KEYS) if size <= SHORT_CACHE else rounded(size, QUARTERS)


def _step(size: int, parts: int) -> int:
    return 1 << max(0, size.bit_length() - parts.bit_length())


def _up(size: int, step: int) -> int:
    return min(LARGEST, -(-size // step) * step)


def _alike(one: AttentionProblem, other: AttentionProblem) -> bool:
    """Whether the same kernels may serve both: a window wider than the keys is none, a square is aligned both ways."""
    square = one.seq_q == one.seq_kv, other.seq_q == other.seq_kv
    return (one.features, one.edges) == (other.features, other.edges) and (one.edges.open or square[0] == square[1])
