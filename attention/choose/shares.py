"""How tile rows are dealt to SMs or cores: what the busiest of them works through."""

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from attention.choose.lengths import UNKNOWN, Lengths, sequences
from attention.choose.stairs import Stairs
from attention.problem import AttentionProblem
from attention.tile import Tile

MOST_STEPS = 1 << 20  # of rows that are looked at one by one: 8 MB an array


@dataclass(frozen=True)
class Share:
    """What the busiest unit works through: full tiles' worth of scores, and tile rows."""

    tiles: float
    rows: float
    busy_units: int


class Rows(NamedTuple):
    """A number of tile rows of a head or a call, as full tiles' worth of scores: the longest, the shortest, and all."""

    number: int
    longest: float
    shortest: float
    total: float


def share_of_busiest(problem: AttentionProblem, tile: Tile, units: int, lengths: Lengths = UNKNOWN) -> Share:
    """Deal the tile rows of all heads to the units, longest first.

    Equal tile rows come in whole rounds; unequal ones (causal) even out, but none is shorter than the longest of them.
    Where keys are split, a row's tiles go to as many units as are free, and each has at least one; or to `key_splits`
    blocks, as evenly as whole tiles allow.
    """
    every = rows_of_all(problem, tile.rows, tile.columns, tile.row_step, tile.column_step, tile.heads, lengths)
    count, total = every.number * tile.key_splits, every.total
    rounds = -(-count // units)
    even = every.longest == every.shortest
    longest = every.longest if tile.key_splits == 1 else float(math.ceil(every.longest / tile.key_splits))
    tiles = rounds * longest if even else max(longest, total / units)
    if tile.split_keys and total < tiles * units:
        return Share(min(tiles, max(1.0, total / units)), float(rounds), units)
    return Share(tiles, float(rounds), min(units, count))


def rows_of_all(
    problem: AttentionProblem,
    rows: int,
    columns: int,
    row_step: int,
    column_step: int,
    heads: int = 1,
    lengths: Lengths = UNKNOWN,
) -> Rows:
    """The tile rows of all heads and sequences of a call; `heads` of a group share a tile's rows."""
    each = [
        (many * problem.heads_q // heads, _rows_of(alone, rows, columns, row_step, column_step, heads))
        for many, alone in sequences(problem, lengths)
    ]
    if len(each) == 1:
        ((many, of),) = each
        return Rows(many * of.number, of.longest, of.shortest, many * of.total)
    return Rows(
        sum(many * of.number for many, of in each),
        max(of.longest for _, of in each),
        min(of.shortest for _, of in each),
        sum(many * of.total for many, of in each),
    )


@lru_cache(maxsize=1024)
def queries(problem: AttentionProblem, lengths: Lengths = UNKNOWN) -> int:
    """Rows of Q over all heads, as many as out has."""
    if lengths:
        return sum(many * queries(alone) for many, alone in sequences(problem, lengths))
    return problem.batch * problem.heads_q * problem.mean_lengths[0]


@lru_cache(maxsize=1024)
def rows_read(problem: AttentionProblem, lengths: Lengths = UNKNOWN) -> int:
    """Rows of Q, and of K that some query sees, over all heads: each comes from DRAM once, as do out's and V's."""
    if lengths:
        return sum(many * rows_read(alone) for many, alone in sequences(problem, lengths))
    queries, keys = problem.mean_lengths
    band = problem.band(queries, keys)
    begin = 0 if band.left is None else min(keys, max(0, band.left))  # the first query's
    end = keys if band.right is None else min(keys, max(0, queries + band.right))  # the last one's
    return problem.batch * (problem.heads_q * queries + problem.heads_kv * max(0, end - begin))


@lru_cache(maxsize=4096)
def _rows_of(problem: AttentionProblem, rows: int, columns: int, row_step: int, column_step: int, heads: int) -> Rows:
    queries, keys = problem.mean_lengths
    band = problem.band(queries, keys)
    steps_in_all, steps_of_one = -(-queries * heads // row_step), max(1, rows // row_step)
    in_all = -(-steps_in_all // steps_of_one)
    step = row_step * column_step / (rows * columns)
    if band.open:  # each step meets all keys
        one = step * -(-keys // column_step)
        last = one * (steps_in_all - (in_all - 1) * steps_of_one)
        return Rows(in_all, one * steps_of_one if in_all > 1 else last, last, one * steps_in_all)
    if band.left is None and band.right is not None and step == steps_of_one == 1 and in_all <= MOST_STEPS:
        stairs = Stairs(in_all, row_step, column_step, heads, band.right, keys)
        return Rows(in_all, float(stairs.met(in_all - 1)), float(stairs.met(0)), float(stairs.met_in_all()))
    # Of more than MOST_STEPS row steps, evenly spaced tile rows stand for all.
    looked_at = min(in_all, max(2, MOST_STEPS // steps_of_one))
    chosen = np.arange(in_all) if looked_at == in_all else np.linspace(0, in_all - 1, looked_at).astype(np.int64)
    at = chosen[:, None] * steps_of_one + np.arange(steps_of_one) if steps_of_one > 1 else chosen[:, None]
    first_rows = at * row_step
    begin, end = band.keys(first_rows // heads, (first_rows + row_step - 1) // heads, keys)  # a query's heads see alike
    steps = np.where((end > begin) & (at < steps_in_all), -(-end // column_step) - begin // column_step, 0)
    tiles = step * steps.sum(axis=1, dtype=np.float64)
    return Rows(in_all, float(tiles.max()), float(tiles.min()), float(tiles.sum()) * (in_all / looked_at))
