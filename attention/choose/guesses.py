"""Tiles whose scores outgrow a guess, so that their exponentials are taken again (row_softmax.cuh).

ALiBi without causality: keys run downwards, so that scores grow on the way to the diagonal, by slope times keys a tile.
"""

import math
from functools import lru_cache

from attention.choose.coefficients.table import of
from attention.problem import AttentionProblem


def behind_the_diagonal(problem: AttentionProblem) -> float:
    """The share of a query's keys that lie to its right, where it sees those: half of them without a window."""
    behind = ahead = problem.seq_kv / 2
    if problem.edges.left is not None:
        ahead = min(ahead, abs(problem.edges.left))
    return behind / (behind + ahead)


@lru_cache
def outgrown(slopes: int, keys: int) -> float:
    """The share of tiles of `keys` behind the diagonal that no guess serves, as the mean over so many heads.

    Slopes are 2^(-8 i / heads), as ALiBi has them for powers of two (Press et al. 2022). Where a tile's scores grow by
    less than what a guess serves, every second tile outgrows it, or every third.
    """
    grown = (math.log2(math.e) * keys * 2 ** (-8 * (head + 1) / slopes) for head in range(slopes))
    return sum(1 / max(1, math.ceil(of("guess_serves") / each)) for each in grown) / slopes
