"""How much more than the mean the busiest unit gets where tiles of rows are unequal, few, and dealt one by one.

Where each unit works through many tiles the short ones even everything out. Of few they do not: an H100's 132 SMs got
314 tiles of 192 rows of a causal call, and the busiest 10 % more than the mean; of 472 tiles of 128 rows, 4 %.

Causal ones go longest first. Where a band has a left edge alone heads follow one another (work.cuh), and the last one's
longest tile begins late: 400 tiles of such a call took an H100's SMs 30 to 40 % longer than their mean.
"""

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from attention.choose.coefficients.table import of
from attention.choose.lengths import Lengths, sequences
from attention.kernels.common.family import dealt as by_lengths
from attention.problem import AttentionProblem

MOST_ROUNDS = 8  # of a tile for every unit: with more the busiest has what the mean has, and half of a short tile
IN_A_ROUND = (
    4  # times that some units, who have least, take a tile each: of any order who has had short ones takes more
)


@lru_cache(maxsize=1024)
def unevenness(problem: AttentionProblem, tile_rows: int, units: int) -> float | None:
    """The busiest unit's keys over the mean's: each round gives a unit one tile, the first of them to whom has least.

    None where there is no more than a tile for every unit, and where there are many.
    """
    heads = problem.batch * problem.heads_q
    if not units < heads * -(-problem.seq_q // tile_rows) <= MOST_ROUNDS * units:
        return None
    begin, end = _keys_of_tiles(problem, tile_rows)
    of_head = end - begin
    sizes = np.tile(of_head, heads) if problem.edges.right is None else np.repeat(np.sort(of_head)[::-1], heads)
    return _busiest_over_mean(sizes, units)


@lru_cache(maxsize=1024)
def unevenness_of_packed(problem: AttentionProblem, tile_rows: int, units: int, lengths: Lengths) -> float | None:
    """The same of sequences of their own lengths without a right edge, as they follow one another.

    All heads of a sequence come before the next one, or where tiles are dealt by lengths all sequences of a head. An
    H200's 132 SMs got 276 tiles of 128 rows, 240 of them of two sequences of 3700 and 3906 keys, in two rounds of
    these, 6 % more than the mean; of 164 such tiles of 192 rows, 53 % more. Where a sequence of 3072 came behind 1408,
    64 and 640 its last tiles began late, and 164 tiles took 60 % more than the mean. None where a right edge sorts
    tiles by sections, and where tiles are many or no more than a tile for every unit.
    """
    if problem.edges.right is not None:
        return None
    heads, together = (problem.heads_q, 1) if by_lengths(problem) else (1, problem.heads_q)
    sizes: list[NDArray[np.int64]] = []
    count = 0
    for many, alone in sequences(problem, lengths):
        count += many * problem.heads_q * -(-alone.seq_q // tile_rows)
        if count > MOST_ROUNDS * units:
            return None
        begin, end = _keys_of_tiles(alone, tile_rows)
        sizes.append(np.tile(end - begin, many * together))
    return _busiest_over_mean(np.tile(np.concatenate(sizes), heads), units) if count > units else None


def _keys_of_tiles(problem: AttentionProblem, tile_rows: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The first key that each tile of a head's rows sees, and the one behind its last."""
    queries, keys = problem.seq_q, problem.seq_kv
    first = np.arange(0, queries, tile_rows)
    return problem.band(queries, keys).keys(first, first + tile_rows - 1, keys)


def _busiest_over_mean(sizes: NDArray[np.int64], units: int) -> float | None:
    loads, some = np.zeros(units), max(1, units // IN_A_ROUND)
    for at in range(0, len(sizes), some):
        dealt = sizes[at : at + some]
        loads.sort()
        loads[: len(dealt)] += dealt
    total = float(sizes.sum())
    return float(loads.max()) * units / total if total else None


@lru_cache(maxsize=1024)
def busiest_of_parts(
    problem: AttentionProblem, tile_rows: int, tile_keys: int, key_splits: int, units: int
) -> tuple[float, float]:
    """Tiles of keys and parts of the unit that ends last, where parts of unequal rows are dealt one by one.

    A part counts as some tiles of keys more, for its begin and end. Where the longest part alone is the last to end,
    its unit has no second one: of 192 parts of a causal call an H200's second ones were short with tiles of 112 keys,
    and as long as the first with 176 (4 heads, 2048 tokens).
    """
    begin, end = _keys_of_tiles(problem, tile_rows)
    tiles = np.sort(np.maximum(1, -(-end // tile_keys) - begin // tile_keys))[::-1]
    of_row = np.repeat(tiles, problem.batch * problem.heads_q)[:, None]
    parts, number = np.minimum(key_splits, of_row), np.arange(key_splits)
    sizes = (of_row * (number + 1) // parts - of_row * number // parts)[number < parts]
    of_part = of("part_tiles")
    taken, ends = np.zeros(units), np.zeros(units)
    for at in range(0, len(sizes), units):
        next_ones = sizes[at : at + units]
        free = np.argsort(ends, kind="stable")[: len(next_ones)]
        taken[free] += next_ones
        ends[free] += next_ones + of_part
    last = int(ends.argmax())
    return float(taken[last]), float(ends[last] - taken[last]) / of_part
