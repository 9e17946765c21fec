"""Query heads of a group that share a warpgroup's rows, as they share K and V: where that is of use, and what it holds.

A box of TMA brings whole queries of a group, so that a warpgroup begins with one, and rows behind its last are nobody's
(common/work.cuh). Without it each head has a tile of its own: of 11 queries and 8 heads on 20073 keys all eight read
the same keys, and an H200 took 5 times as long as FlashAttention-4, which packs them so.

No torch here.
"""

from attention.kernels.common.family import dealt
from attention.problem import AttentionProblem

GROUP_ROWS = 64  # M of wgmma
FEWER = 3, 4  # of the tiles that heads by themselves have
MOST_VALUES = 128  # value dims: of 192 and 256 addresses of rows spilled 4 to 76 bytes of the tiles that heads alone hold


def group_of(problem: AttentionProblem) -> int:
    """Query heads that share K and V."""
    return problem.heads_q // problem.heads_kv


def packed(problem: AttentionProblem, warpgroups: int) -> int:
    """Heads that share a tile of rows of so many warpgroups, else 0.

    ALiBi and masks are of one head, and dealt tiles of one sequence, as in sm80/forward/split_keys.
    """
    group, (few, many) = group_of(problem), FEWER
    if group == 1 or group > GROUP_ROWS or problem.head_dim_v > MOST_VALUES:
        return 0
    if problem.alibi or problem.mask != "none" or dealt(problem):
        return 0
    alone = group * -(-problem.seq_q // (GROUP_ROWS * warpgroups))
    together = -(-problem.seq_q // (queries_of(group) * warpgroups))
    return group if many * together <= few * alone else 0


def queries_of(group: int) -> int:
    """That a warpgroup has of so many heads."""
    return GROUP_ROWS // group
