"""How much more than the mean the busiest unit gets where tiles of rows are unequal, few, and dealt one by one.

Where each unit works through many tiles the short ones even everything out. Of few they do not: an H100's 132 SMs got
314 tiles of 192 rows of a causal call, and the busiest 10 % more than the mean; of 472 tiles of 128 rows, 4 %.

Causal ones go longest first in each section of heads. Where a band has a left edge alone heads follow one another
(work.cuh), and the last one's longest tile begins late: 400 tiles of such a call took an H100's SMs 30 to 40 % longer
than their mean.
"""

from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from attention.choose.coefficients.table import of
from attention.choose.lengths import Lengths, sequences
from attention.kernels.common.family import dealt as by_lengths
from attention.kernels.common.family import section_of
from attention.problem import AttentionProblem

MOST_ROUNDS = 8  # of a tile for every unit: with more the busiest has what the mean has, and half of a short tile
LAST_ROUNDS = 2  # of many tiles that are dealt one by one: those before them are even
IN_A_ROUND = 4  # times that some units, who end first, take a tile each: who has had short ones takes more


class Busiest(NamedTuple):
    """The unit that ends last: its keys over the mean's, and how many tiles of rows it has."""

    over_mean: float
    tiles: int


@lru_cache(maxsize=1024)
def unevenness(problem: AttentionProblem, tile_rows: int, units: int) -> Busiest | None:
    """The unit that ends last: each round gives a unit one tile, the first of them to whom has least.

    Causal ones come by sections of heads, longest first in each: the last section's begin late. An H200 took 50 us for
    512 tiles of 489 tokens in four sections, and the mean and half of a short one are 34 (b-71). Where tiles are many
    the last sections alone are dealt, and those before them are even. None where there is no more than a tile for
    every unit, and of other bands where there are many.
    """
    heads = problem.batch * problem.heads_q
    of_head = -(-problem.seq_q // tile_rows)
    count = heads * of_head
    if count <= units or (count > MOST_ROUNDS * units and problem.edges.right is None):
        return None
    begin, end = _keys_of_tiles(problem, tile_rows)
    of_rows = end - begin
    if problem.edges.right is None:
        return _busiest(np.tile(of_rows, heads), units)
    section = section_of(problem)
    longest_first = np.sort(of_rows)[::-1]
    dealt = MOST_ROUNDS if count <= MOST_ROUNDS * units else LAST_ROUNDS
    last = min(heads, section * -(-dealt * units // (section * of_head)))
    first = heads - last
    first -= first % section
    widths = [min(section, heads - at) for at in range(first, heads, section)]
    found = _busiest(np.concatenate([np.repeat(longest_first, width) for width in widths]), units)
    if not found or not first:
        return found
    share = (heads - first) / heads
    return Busiest(1 + (found.over_mean - 1) * share, round(count / units))


@lru_cache(maxsize=1024)
def unevenness_of_packed(problem: AttentionProblem, tile_rows: int, units: int, lengths: Lengths) -> Busiest | None:
    """The same of sequences of their own lengths, as they follow one another.

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
    return _busiest(np.tile(np.concatenate(sizes), heads), units) if count > units else None


def _keys_of_tiles(problem: AttentionProblem, tile_rows: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The first key that each tile of a head's rows sees, and the one behind its last."""
    queries, keys = problem.seq_q, problem.seq_kv
    first = np.arange(0, queries, tile_rows)
    return problem.band(queries, keys).keys(first, first + tile_rows - 1, keys)


def _busiest(sizes: NDArray[np.int64], units: int) -> Busiest | None:
    around = of("keys_around_rows")
    ends, tiles, some = np.zeros(units), np.zeros(units, np.int64), max(1, units // IN_A_ROUND)
    for at in range(0, len(sizes), some):
        dealt = sizes[at : at + some]
        free = np.argsort(ends, kind="stable")[: len(dealt)]
        ends[free] += dealt + around
        tiles[free] += 1
    total, last = float(sizes.sum()), int(ends.argmax())
    taken = int(tiles[last])
    return Busiest(max(1.0, float(ends[last] - around * taken) * units / total), taken) if total else None


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
