"""How many tiles of keys, tiles of rows and edges the busiest SM works through.

Equal tiles of rows come in whole rounds. Unequal ones are dealt as SMs become free: half of the last one is still
missing on the average, which is a short one where the longest go first (causal), and a long one of packed sequences
without causality. Few that go longest first, and few packed ones without causality, are dealt out one by one
(choose.longest_first).
"""

import math
from dataclasses import replace
from functools import lru_cache
from typing import NamedTuple

from attention.choose.coefficients.table import GROUP_ROWS
from attention.choose.lengths import UNKNOWN, Lengths
from attention.choose.longest_first import Busiest, busiest_of_parts, unevenness
from attention.choose.shares import Rows, rows_of_all
from attention.choose.warpgroups.edges import edges_of
from attention.kernels.common.family import dealt as by_lengths
from attention.kernels.common.family import heads_of, section_of
from attention.problem import AttentionProblem


class Dealt(NamedTuple):
    """Of the busiest SM; `in_all` are the tiles of keys of the whole call, and `every` its tiles of rows.

    Where blocks share the keys of a tile of rows, each of its `parts` counts as one. `alike`: all have as many keys.
    """

    keys: float
    rows: float
    edges: float
    in_all: float
    every: int
    parts: int = 1
    alike: bool = False


@lru_cache(maxsize=1024)
def by_groups(problem: AttentionProblem, group: int) -> AttentionProblem:
    """A call whose heads share rows, as one of so many fewer heads: tiles of its rows are counted in queries."""
    return problem if group == 1 else replace(problem, heads_q=problem.heads_q // group)


@lru_cache(maxsize=4096)
def idle_steps(right: int, warpgroups: int, keys: int, tiles: int = 0, every: int = 0) -> tuple[float, ...]:
    """Tiles of keys that 1, 2, ... warpgroups of a tile of rows take while causality hides them from the others.

    The mean of a head's `tiles` of rows, before `every` key; where they are many, or not given, of tiles of rows that
    lie differently to tiles of keys. `right`: the last key that a query sees, beside the diagonal. Three warpgroups
    take tiles of 64 keys in three steps of 1, 2 and 3 of them, of 96 in steps of 2 and 3.
    """
    rows = GROUP_ROWS * warpgroups
    alike = keys // math.gcd(rows, keys)
    given = 0 < tiles <= alike
    number, behind = (tiles, -(-every // keys) - 1) if given else (alike, math.inf)
    counts = [0.0] * (warpgroups - 1)
    for first in range(0, rows * number, rows):
        sees = [(first + GROUP_ROWS * (group + 1) + right - 1) // keys for group in range(warpgroups)]
        last = [max(-1, min(behind, each)) for each in sees]
        for busy in range(1, warpgroups):
            counts[busy - 1] += last[warpgroups - busy] - last[warpgroups - busy - 1]
    return tuple(each / number for each in counts)


@lru_cache(maxsize=4096)
def dealt(
    problem: AttentionProblem,
    tile_rows: int,
    tile_keys: int,
    units: int,
    lengths: Lengths = UNKNOWN,
    key_splits: int = 1,
    queries: int = GROUP_ROWS,
) -> Dealt:
    """Deal the tiles of rows of all heads and sequences to the SMs, or so many parts of the keys of each.

    `queries`: of a warpgroup's rows.
    """
    every = rows_of_all(problem, tile_rows, tile_keys, tile_rows, tile_keys, lengths=lengths)
    if key_splits > 1:
        return _in_parts(problem, every, (tile_rows, tile_keys), units, key_splits, queries)
    count, in_all, longest = every.number, every.total, every.longest
    edges = edges_of(problem, queries, tile_keys)
    if longest == every.shortest:
        rounds = -(-count // units)
        return Dealt(rounds * longest, rounds, rounds * edges, in_all, count, alike=True)
    packed = problem.varlen or lengths
    uneven = unevenness(problem, tile_rows, units, lengths)
    if uneven is None:
        last = _last(problem, tile_rows, every, units) if packed else max(1.0, every.shortest)
        keys, rows = in_all / units + last / 2, count / units + 1 / 2
    else:
        keys, rows = _of_busiest(uneven, in_all / units, longest)
    even, rounds = Dealt(keys, rows, rows * edges, in_all, count), -(-count // units)
    if even.keys > rounds * longest:  # no worse than of rows that all see as much as the longest
        return Dealt(rounds * longest, rounds, rounds * edges, in_all, count)
    return even if even.keys > longest else Dealt(longest, 1, edges, in_all, count)


def _of_busiest(busiest: Busiest, mean: float, longest: float) -> tuple[float, int]:
    """Its tiles of keys and of rows: one tile of rows alone is the longest, whose last tile of keys is a whole one."""
    return longest if busiest.tiles == 1 else busiest.over_mean * mean, busiest.tiles


def _last(problem: AttentionProblem, tile_rows: int, every: Rows, units: int) -> float:
    """The tile of rows that a packed call ends with: half of it is missing on the average.

    Causal ones go longest first in a section of heads and sequences, or where tiles are dealt by lengths in a sequence.
    Then the longest of all is late only where less goes with it than it takes.
    """
    longest, shortest = every.longest, max(1.0, every.shortest)
    if problem.edges.right is None:
        return longest
    if by_lengths(problem):
        rows = -(-problem.seq_q // tile_rows) * problem.heads_q
        return shortest + max(0.0, longest - shortest - rows * longest / 2 / units)
    sections = -(-heads_of(problem) // section_of(problem))
    return shortest + max(0.0, longest - shortest - every.total / units / sections) / sections


def _in_parts(
    problem: AttentionProblem, every: Rows, tile: tuple[int, int], units: int, key_splits: int, queries: int
) -> Dealt:
    """Parts of a tile of rows differ by a tile of keys at most, and one of them has the edge."""
    parts = max(1, min(key_splits, math.ceil(every.longest)))
    count, longest = every.number * parts, every.longest / parts
    rounds, edges = -(-count // units), edges_of(problem, queries, tile[1])
    if rounds > 1 and every.longest > every.shortest and not problem.own_lengths:
        taken, rows = busiest_of_parts(problem, *tile, key_splits, units)
        return Dealt(max(taken, every.total / units), rows, edges, every.total, count, parts)
    if rounds > 1:
        # An SM with a part of middle length has two such, as the longest go first, and some SM the longer ones.
        shortest = every.shortest / parts
        middle = longest - (longest - shortest) * min(1.0, units * rounds / 2 / count)
        longest = max(longest, rounds * math.ceil(middle))
    return Dealt(max(math.ceil(longest), every.total / units), rounds, edges, every.total, count, parts)
