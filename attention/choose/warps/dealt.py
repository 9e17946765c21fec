"""How many blocks of which work the busiest SM has, and how many of them at a time.

Equal blocks come in whole rounds, the last of which may leave each SM fewer than it holds. Unequal ones are dealt as
SMs become free: half of the last one is still missing on the average, which is a short one where the longest go first
(causal), and a long one of packed sequences. It shares its SM with nobody. Few that go longest first are dealt out one
by one (choose.longest_first).
"""

import math
from functools import cache, lru_cache
from typing import NamedTuple

from attention.choose.coefficients.table import BYTES, LINE, SECTOR
from attention.choose.lengths import UNKNOWN, Lengths, sequences
from attention.choose.lines import leads, lines_of, shared_of
from attention.choose.longest_first import unevenness
from attention.choose.shares import Rows, rows_of_all
from attention.choose.warps.work import Work
from attention.kernels.common.family import readers
from attention.problem import AttentionProblem
from attention.tile import WarpTile

KeyRows = tuple[tuple[int, int], tuple[int, int]]  # of K and of V: the dim, and bytes that are copied side by side


class Stay(NamedTuple):
    """So many blocks of a work, one after another, while `resident` share the SM."""

    work: Work
    resident: int
    times: float


class Dealt(NamedTuple):
    """The stays of the busiest SM; `at_least` is the longest block's alone. `slices` are those of the whole call.

    `empty`: blocks for which no keys are left, one after another. `blocks` have keys, those of so many `tiles` of rows;
    `parts` of them share the keys of the longest. So many `places` the GPU has for them. `alike`: all take as long.
    `unlike`: how many blocks have so many slices each, of sequences of their own lengths.
    """

    stays: tuple[Stay, ...]
    at_least: Stay
    slices: float
    empty: float
    blocks: int
    tiles: int
    parts: int
    places: int
    alike: bool = False
    unlike: tuple[tuple[float, float], ...] = ()


def dealt(problem: AttentionProblem, tile: WarpTile, units: int, lengths: Lengths = UNKNOWN) -> Dealt:
    """Deal the blocks of all heads and sequences to the SMs."""
    whole = _rows(problem, tile.rows, tile.step_keys, tile.group, lengths)
    parts = _parts(tile, whole)
    every, tiles = _blocks(problem, tile, lengths, whole), whole.number
    count, held = every.number, units * tile.blocks
    grid = tiles * tile.key_splits
    empty = max(0, grid - max(count, held)) / held  # those that start together keep nobody waiting
    of_keys, cold = readers(problem, tile.rows, tile.group), min(1.0, held / count)
    rows = (problem.head_dim, tile.key_span_bytes), (problem.head_dim_v, tile.value_span_bytes)
    from_sector = leads(problem)
    touched = sum(lines_of(dim, span, from_sector) for dim, span in rows)
    loaded = _loaded(problem, tile, whole.total * tile.step_keys, lengths)
    lines = loaded * (touched + _sent_again(rows, tile.key_warps > 1, from_sector))
    # Rows of one head follow one another, and the next one fills what one leaves of a line.
    parted = touched - BYTES * (problem.head_dim + problem.head_dim_v) / LINE if problem.heads_kv > 1 else 0.0

    def work(slices: float) -> Work:
        return Work(slices, min(slices, _hidden(problem, tile, slices)), of_keys, lines, parted, cold, loaded=loaded)

    alone = Stay(work(max(1.0, every.longest)), 1, 1.0)
    rounds, rest = divmod(count, held)
    begun = alone.work
    if tile.key_warps > 1 and count <= held:
        begun = begun._replace(beside=max(1.0, count / units), mean=every.total / count)
    full = (Stay(begun, tile.blocks, rounds),) if rounds else ()
    # Parts end together, and the next ones fill the SMs that were first.
    together = tile.blocks if rounds and parts > 1 else math.ceil(rest / units)
    last = (Stay(begun, together, 1.0),) if rest else ()
    all_of_it = every.total, empty, count, tiles, parts, held
    equal = Dealt((*full, *last), alone, *all_of_it, alike=True)
    if every.longest == every.shortest:
        return equal
    unlike = _unlike(problem, tile, lengths)
    if count <= units:
        return Dealt((alone,), alone, *all_of_it, unlike=unlike)
    mean = every.total / count
    in_order = problem.varlen or lengths or not tile.pipelined
    uneven = None if in_order else unevenness(problem, tile.rows, held, group=tile.group)
    if uneven is not None:
        busiest = work(max(1.0, uneven.over_mean * mean * count / held / uneven.tiles))
        return Dealt((Stay(busiest, tile.blocks, uneven.tiles),), alone, *all_of_it)
    last_one = every.longest if in_order else max(1.0, every.shortest)
    if not lengths and mean * count / held + last_one / 2 > every.longest * -(-count // held):
        return equal  # no worse than of blocks that all see as much as the longest
    even = Stay(work(mean), tile.blocks, count / held)
    missing = Stay(work(last_one), 1, 1 / 2)
    return Dealt((even, missing), alone, *all_of_it, unlike=unlike)


def _loaded(problem: AttentionProblem, tile: WarpTile, seen: float, lengths: Lengths) -> float:
    """Keys that blocks load for each of so many that they take: tiles are whole, and slices at an edge are left out.

    Where 4 heads share 64 causal rows of 256 tokens, 2.5 tiles of 64 keys for 4.5 slices of 32.
    """
    if tile.step_keys == tile.keys or not seen or problem.band(*problem.mean_lengths).open:
        return 1.0
    return max(1.0, _rows(problem, tile.rows, tile.keys, tile.group, lengths).total * tile.keys / seen)


@cache
def _sent_again(rows: KeyRows, in_pairs: bool, from_sector: bool) -> float:
    """Sectors that the copying of a key asks for a second time, on the average over all heads.

    `in_pairs`: chunks of 16 bytes lie in pairs in shared memory. Copied beyond ends of rows, a sector still fills two.
    """
    return sum(shared_of(dim, SECTOR if in_pairs else span, from_sector) for dim, span in rows)


@lru_cache(maxsize=4096)  # a choice asks for each number of blocks
def _rows(problem: AttentionProblem, rows: int, slice_keys: int, group: int, lengths: Lengths) -> Rows:
    return rows_of_all(problem, rows, slice_keys, rows, slice_keys, group, lengths)


def _blocks(problem: AttentionProblem, tile: WarpTile, lengths: Lengths, whole: Rows) -> Rows:
    """Blocks that have keys, each one of the `whole` tiles of rows or a part of their keys."""
    if not (tile.key_splits > 1 and (lengths or problem.varlen)):
        return _split(tile, whole)
    # Each sequence's tiles by themselves: a short one's keys are fewer tiles than blocks that might share them.
    each = _each(problem, tile, lengths)
    count = sum(many * of.number for many, of in each)
    longest, shortest = max(of.longest for _, of in each), min(of.shortest for _, of in each)
    return Rows(count, longest, shortest, whole.total)


def _each(problem: AttentionProblem, tile: WarpTile, lengths: Lengths) -> list[tuple[int, Rows]]:
    """So many sequences, and the blocks of one."""
    how = tile.rows, tile.step_keys, tile.group
    return [(many, _split(tile, _rows(alone, *how, UNKNOWN))) for many, alone in sequences(problem, lengths)]


def _unlike(problem: AttentionProblem, tile: WarpTile, lengths: Lengths) -> tuple[tuple[float, float], ...]:
    if not lengths or (problem.edges.right is not None and problem.seq_q > tile.rows):
        return ()
    each = _each(problem, tile, lengths)
    return tuple((many * of.number, of.total / of.number) for many, of in each)


def _parts(tile: WarpTile, every: Rows) -> int:
    """Blocks that share the keys of the longest tile of rows: each has a tile of keys or more."""
    if tile.key_splits == 1:
        return 1
    return max(1, min(tile.key_splits, math.ceil(every.longest * tile.step_keys / tile.keys)))


def _split(tile: WarpTile, every: Rows) -> Rows:
    """The same, of blocks that share a row's keys: whole tiles of them."""
    parts, slices = _parts(tile, every), tile.keys // tile.step_keys
    if parts == 1:
        return every
    most, least = (math.ceil(each / slices) for each in (every.longest, every.shortest))
    longest, shortest = (math.ceil(each / parts) * slices for each in (most, least))
    blocks = _parts_of_rows(parts, most, least, every.total / every.number / slices)
    return Rows(round(every.number * blocks), longest, shortest, every.total)


def _parts_of_rows(parts: int, most: int, least: int, mean: float) -> float:
    """Parts that have keys, of the mean tile of rows: no more are asked for than the longest has tiles.

    Below a diagonal numbers of tiles from `least` to `most` are equally frequent, and in a window all have the most.
    """
    if parts <= least:
        return parts
    fewer = (least + parts) * (parts - least + 1) / 2  # where each part has one tile
    below = (fewer + (most - parts) * parts) / (most - least + 1)
    share = min(1.0, max(0.0, 2 * (most - mean) / (most - least)))
    return share * below + (1 - share) * parts


def _hidden(problem: AttentionProblem, tile: WarpTile, slices: float) -> float:
    """Slices of a block that take the masked step: all tiles that an edge meets, the first of all in any case."""
    if problem.mask != "none" or tile.takes_maxima:
        return slices
    of_tile = tile.keys / tile.step_keys
    queries = tile.rows // tile.group
    met = queries / tile.keys + (1 if queries % tile.keys else 0)
    # Of a first tile that no edge meets, those that have a key.
    first = met * of_tile if problem.edges.right is not None else slices - (math.ceil(slices / of_tile) - 1) * of_tile
    left = (met + (tile.keys - 1) / tile.keys) * of_tile if problem.edges.left is not None else 0.0
    return first + left
