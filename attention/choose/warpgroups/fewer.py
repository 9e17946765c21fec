"""Tiles of keys that fewer warpgroups of a block work through, as the others have nothing to do there.

Causality hides keys from some of them, and the last tile of rows that heads share may leave some without rows.
"""

from functools import lru_cache
from typing import NamedTuple

from attention.choose.coefficients.table import GROUP_ROWS
from attention.choose.scores import ScoreCost
from attention.choose.warpgroups.dealt import Dealt, idle_steps
from attention.choose.warpgroups.parts import Parts, Rates
from attention.choose.warpgroups.step import steps_of
from attention.problem import AttentionProblem
from attention.tile import WarpgroupTile

Work = list[tuple[Parts, float]]  # steps of the busiest SM, and how often it has each


class Fewer(NamedTuple):
    """Steps of 1, 2, ... warpgroups, and how many of each a tile of rows has, in all `together`.

    `apart`: warpgroups end a tile of rows one after another.
    """

    steps: tuple[Parts, ...]
    of_rows: tuple[float, ...]
    together: float
    apart: bool

    def of(self, work: Work, share: Dealt, key_splits: int) -> Work:
        """Work whose tiles of keys are in part of fewer.

        Of parts of a tile of rows one has the edge; each has a step of all its warpgroups.
        """
        rows = share.rows if key_splits == 1 else 1.0
        most = max(0.0, share.keys - share.rows)
        times = min(rows, most / self.together) if self.together else 0.0
        many = [times * each for each in self.of_rows]
        (step, keys), *others = work
        return [(step, keys - sum(many)), *others, *zip(self.steps, many, strict=True)]


def fewer_of(
    tile: WarpgroupTile, cost: ScoreCost, rates: Rates, problem: AttentionProblem, share: Dealt
) -> Fewer | None:
    """Of a call, where it has such tiles of keys."""
    if tile.group > 1:
        return _without_rows(tile, cost, rates, problem, share)
    if problem.edges.right is None:
        return None
    return _hidden(tile, cost, rates, *_seen(problem, GROUP_ROWS * tile.warpgroups))


def _seen(problem: AttentionProblem, tile_rows: int) -> tuple[int, int, int]:
    """The last key that the first query sees, a head's tiles of rows and its keys; 0 where each has its own lengths."""
    queries, keys = problem.mean_lengths
    if problem.own_lengths:
        return problem.edges.right or 0, 0, 0
    return problem.band(queries, keys).right or 0, -(-queries // tile_rows), keys


@lru_cache(maxsize=1024)
def _hidden(tile: WarpgroupTile, cost: ScoreCost, rates: Rates, right: int, tiles: int, keys: int) -> Fewer:
    """As causality leaves the other warpgroups of a tile of rows nothing to do."""
    of_rows = idle_steps(right, tile.warpgroups, tile.keys, tiles, keys)
    return Fewer(_steps_of_fewer(tile, cost, rates), of_rows, sum(of_rows), apart=True)


def _without_rows(
    tile: WarpgroupTile, cost: ScoreCost, rates: Rates, problem: AttentionProblem, share: Dealt
) -> Fewer | None:
    """As the last tile of rows of heads that share it leaves warpgroups without any, which pass by.

    Of the busiest SM's such tiles all but one: a whole one that comes late ends the call.
    """
    queries = GROUP_ROWS // tile.group  # of a warpgroup
    tiles = -(-problem.seq_q // (queries * tile.warpgroups))
    busy = -(-problem.seq_q // queries) - (tiles - 1) * tile.warpgroups
    short = share.rows / tiles - 1
    if busy == tile.warpgroups or short <= 0 or problem.own_lengths:
        return None
    together = short * share.keys / share.rows**2
    of_rows = [together if groups == busy else 0.0 for groups in range(1, tile.warpgroups)]
    return Fewer(_steps_of_fewer(tile, cost, rates), tuple(of_rows), together, apart=False)


def _steps_of_fewer(tile: WarpgroupTile, cost: ScoreCost, rates: Rates) -> tuple[Parts, ...]:
    fewer = (tile._replace(warpgroups=busy) for busy in range(1, tile.warpgroups))
    return tuple(steps_of(each, cost, rates).keys for each in fewer)
