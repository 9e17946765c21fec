"""Tiles of keys that an edge meets: there scores are masked one by one, and no guess serves.

Rows of a warpgroup that begin where tiles of keys do meet their diagonal in one tile of 64 or 128 keys, and in 1.6 of
80: causality had been counted as if any row came first, 1.98, 1.49 and 1.79.
"""

import math
from functools import lru_cache

from attention.problem import AttentionProblem


def edges_of(problem: AttentionProblem, queries: int, tile_keys: int) -> float:
    """Of a warpgroup's so many queries, on the average, beside the first tile of keys, which is masked anyway."""
    edges, (rows, keys) = problem.edges, problem.mean_lengths
    if problem.own_lengths and problem.alignment == "bottom_right" and not _as_many_keys(problem):
        met = 1 + (queries - 1) / tile_keys  # rows begin anywhere
        return (met if edges.left is not None else 0.0) + (met - 1 if edges.right is not None else 0.0)
    moved = edges if problem.own_lengths else problem.band(rows, keys)
    number = -(-rows // queries)
    right = 0.0 if moved.right is None else _beside_first(moved.right, queries, tile_keys, number, keys)
    return right + (0.0 if moved.left is None else _to_the_left(moved.left, queries, tile_keys, number))


def _as_many_keys(problem: AttentionProblem) -> bool:
    """Whether each sequence has as many keys as queries, as far as the host knows."""
    return problem.varlen and (problem.tokens_q, problem.seq_q) == (problem.tokens_kv, problem.seq_kv)


@lru_cache(maxsize=4096)
def _beside_first(right: int, queries: int, tile_keys: int, number: int, keys: int) -> float:
    """As seen.cuh: from the first tile that hides a key from some row to the last that a row sees."""
    many = min(number, tile_keys // math.gcd(queries, tile_keys))
    behind = keys if many == number else math.inf
    found = 0.0
    for first in range(right, right + queries * many, queries):
        found += max(0, (min(behind, first + queries) - 1) // tile_keys - max(0, first + 1) // tile_keys)
    return found / many


@lru_cache(maxsize=4096)
def _to_the_left(left: int, queries: int, tile_keys: int, number: int) -> float:
    """Likewise to the tile that every row sees; the first rows of a sequence may have no such edge."""
    many = tile_keys // math.gcd(queries, tile_keys)
    begin = left if number <= many else left % (tile_keys * queries)
    many = min(number, many)
    found = 0.0
    for first in range(begin, begin + queries * many, queries):
        found += max(0, -(-(first + queries - 1) // tile_keys) - max(0, first // tile_keys))
    return found / many
