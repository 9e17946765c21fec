"""Query heads of a group that share a warpgroup's rows, as they share K and V: where that is of use, and what it holds.

A box of TMA brings whole queries of a group, so that a warpgroup begins with one, and rows behind its last are
nobody's (common/work.cuh). Heads by themselves each read the same keys: of 11 queries and 8 heads on 20073 keys an H200
took 1564 us so, 299 packed, and 437 by sm80/forward/split_keys; of 15 and 4 on 512 20, 8.5 and 17.7.

No torch here.
"""

from attention.problem import AttentionProblem

GROUP_ROWS = 64  # M of wgmma
FEWER = 2  # tiles of rows of heads by themselves for each of theirs together: 14 for 9 brought nothing
# Value dims: of 192 and 256 addresses of rows spill 4 to 76 bytes of tiles that heads by themselves hold.
MOST_VALUES = 128


def group_of(problem: AttentionProblem) -> int:
    """Query heads that share K and V."""
    return problem.heads_q // problem.heads_kv


def packed(problem: AttentionProblem, warpgroups: int) -> int:
    """Heads that share a tile of rows of so many warpgroups, else 0.

    ALiBi and masks are of one head, as in sm80/forward/split_keys. Tiles that are dealt by lengths are of many queries.
    """
    group = group_of(problem)
    if group == 1 or group > GROUP_ROWS or problem.head_dim_v > MOST_VALUES:
        return 0
    alone = group * -(-problem.seq_q // (GROUP_ROWS * warpgroups))
    together = -(-problem.seq_q // (queries_of(group) * warpgroups))
    return 0 if FEWER * together > alone or problem.alibi or problem.mask != "none" else group


def queries_of(group: int) -> int:
    """That a warpgroup has of so many heads."""
    return GROUP_ROWS // group
