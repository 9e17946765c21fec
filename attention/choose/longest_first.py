"""How much more than the mean the busiest unit gets where tiles of rows are unequal, few, and dealt one by one.

Where each unit works through many tiles the short ones even everything out. Of few they do not: an H100's 132 SMs got
314 tiles of 192 rows of a causal call, and the busiest 10 % more than the mean; of 472 tiles of 128 rows, 4 %.

Causal ones go longest first. Where a band has a left edge alone heads follow one another (work.cuh), and the last one's
longest tile begins late: 400 tiles of such a call took an H100's SMs 30 to 40 % longer than their mean.
"""

from functools import lru_cache

import numpy as np

from attention.problem import AttentionProblem

MOST_ROUNDS = 8  # of a tile for every unit: with more the busiest has what the mean has, and half of a short tile


@lru_cache(maxsize=1024)
def unevenness(problem: AttentionProblem, tile_rows: int, units: int) -> float | None:
    """The busiest unit's keys over the mean's: each round gives a unit one tile, the first of them to whom has least.

    None where there is no more than a tile for every unit, and where there are many.
    """
    heads, queries, keys = problem.batch * problem.heads_q, problem.seq_q, problem.seq_kv
    first = np.arange(0, queries, tile_rows)
    if not units < heads * len(first) <= MOST_ROUNDS * units:
        return None
    begin, end = problem.band(queries, keys).keys(first, first + tile_rows - 1, keys)
    of_head = end - begin
    sizes = np.tile(of_head, heads) if problem.edges.right is None else np.repeat(np.sort(of_head)[::-1], heads)
    loads = np.zeros(units)
    for at in range(0, len(sizes), units):
        dealt = sizes[at : at + units]
        loads.sort()
        loads[: len(dealt)] += dealt
    total = float(sizes.sum())
    return float(loads.max()) * units / total if total else None
