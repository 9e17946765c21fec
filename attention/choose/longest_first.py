"""How much more than the mean the busiest unit gets where tiles of rows are unequal, few, and dealt one by one.

Where each unit works through many tiles the short ones even everything out. Of few they do not: an H100's 132 SMs got
314 tiles of 192 rows of a causal call, and the busiest 10 % more than the mean; of 472 tiles of 128 rows, 4 %.

Causal ones go longest first in each section of heads. Where a band has a left edge alone heads follow one another
(work.cuh), and the last one's longest tile begins late: 400 tiles of such a call took an H100's SMs 30 to 40 % longer
than their mean.
"""

from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from attention.choose.coefficients.table import of
from attention.choose.lengths import UNKNOWN, Lengths, sequences
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
def unevenness(
    problem: AttentionProblem, tile_rows: int, units: int, lengths: Lengths = UNKNOWN, group: int = 1
) -> Busiest | None:
    """The unit that ends last: each round gives a unit one tile, the first of them to whom has least.

    Heads of a `group` share tiles of rows.

    Of many causal ones the last are dealt, and those before them are even. None of other bands where there are many,
    of causal ones that use a part of their slots, and where there is no more than a tile for every unit.
    """
    causal = problem.edges.right is not None
    if causal and lengths and not problem.varlen:
        return None
    each = sequences(problem, lengths)
    heads = problem.heads_q // group
    count = sum(many * -(-alone.seq_q * group // tile_rows) for many, alone in each) * heads
    few = count <= MOST_ROUNDS * units
    if count <= units or not (few or causal):
        return None
    runs = [Run(many, keys) for many, alone in each if (keys := _keys_of_tiles(alone, tile_rows, group)).size]
    sections = _by_sections(problem, heads, runs) if causal else _by_heads(problem, heads, runs)
    of_last, sizes = (MOST_ROUNDS if few else LAST_ROUNDS) * units, np.zeros(0, np.int64)
    while len(sizes) < min(of_last, count) and (section := next(sections, None)) is not None:
        sizes = np.concatenate((section, sizes))
    total = sum(run.many * int(run.keys.sum()) for run in runs) * heads
    dealt = sizes if few else sizes[-of_last:]
    found = _busiest(dealt, units)
    if found is None or few:
        return found
    return Busiest(1 + (found.over_mean - 1) * float(dealt.sum()) / total, round(count / units))


class Run(NamedTuple):
    """So many sequences that follow one another, and the keys that each tile of rows of one sees."""

    many: int
    keys: NDArray[np.int64]


def _by_heads(problem: AttentionProblem, heads: int, runs: list[Run]) -> Iterator[NDArray[np.int64]]:
    """All tiles, as heads follow one another: of a sequence, or where tiles are dealt by lengths of all sequences.

    An H200's 132 SMs got 276 tiles of 128 rows, 240 of them of two packed sequences of 3700 and 3906 keys, in two
    rounds of these, 6 % more than the mean; of 164 such tiles of 192 rows, 53 % more. Where a sequence of 3072 came
    behind 1408, 64 and 640 its last tiles began late, and 164 tiles took 60 % more than the mean.
    """
    times, together = (heads, 1) if by_lengths(problem) else (1, heads)
    yield np.tile(np.concatenate([np.tile(run.keys, run.many * together) for run in runs]), times)


def _by_sections(problem: AttentionProblem, heads: int, runs: list[Run]) -> Iterator[NDArray[np.int64]]:
    """Tiles of sections of heads, longest first in each, from the last section on (common/work.cuh).

    The last section's longest begin late. An H200 took 50 us for 512 tiles of 489 tokens in four sections, and the mean
    and half of a short one are 34 (b-71). Where tiles are dealt by lengths the last sequence comes first in a section:
    228 tiles of a long first one came behind 1024 short ones, and the last round of them was not full (b-77).
    """
    section = section_of(problem)
    if by_lengths(problem):
        of_head = np.concatenate([np.tile(run.keys[::-1], run.many) for run in reversed(runs)])
        for at in reversed(range(0, heads, section)):
            yield np.repeat(of_head, min(section, heads - at))
        return
    ends = np.cumsum([run.many * heads for run in runs])
    pairs, longest_first = int(ends[-1]), [run.keys[::-1] for run in runs]
    for at in reversed(range(0, pairs, section)):
        number = np.searchsorted(ends, np.arange(at, min(at + section, pairs)), side="right").tolist()
        yield _side_by_side([longest_first[each] for each in number])


def _side_by_side(pairs: list[NDArray[np.int64]]) -> NDArray[np.int64]:
    """Last tiles first, those of one number together; a short sequence has none of the first numbers."""
    if all(keys is pairs[0] for keys in pairs):
        return np.repeat(pairs[0], len(pairs))
    most = max(map(len, pairs))
    table = np.zeros((most, len(pairs)), np.int64)
    for at, keys in enumerate(pairs):
        table[most - len(keys) :, at] = keys
    return table[table > 0]


def _keys_of_tiles(problem: AttentionProblem, tile_rows: int, group: int) -> NDArray[np.int64]:
    """How many keys each tile of a head's rows sees."""
    begin, end = _band_of_tiles(problem, tile_rows, group)
    return end - begin


def _band_of_tiles(
    problem: AttentionProblem, tile_rows: int, group: int = 1
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The first key that each tile of a head's rows sees, and the one behind its last."""
    queries, keys = problem.seq_q, problem.seq_kv
    first = np.arange(0, queries * group, tile_rows)
    return problem.band(queries, keys).keys(first // group, (first + tile_rows - 1) // group, keys)


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
    begin, end = _band_of_tiles(problem, tile_rows)
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
