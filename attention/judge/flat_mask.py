"""A mask of fewer than two dimensions, which torch's math takes, and torch's flash attention on a CPU does not.

Torch 2.13 asks such a mask for its second dimension while it chooses, and raises an IndexError. Where something sends
a call to the math before, it is served: fewer dimensions of a query, unlike heads or batches, dropout.
"""

from typing import Any

from attention.errors import RankError
from attention.problem import AttentionProblem


def is_flat(mask: Any) -> bool:
    return mask is not None and len(mask.shape) < 2


def fails_in_torch(problem: AttentionProblem, tensors: tuple[Any, Any, Any], mask: Any) -> bool:
    """Whether torch's function cannot serve this call of sdpa on a CPU for the sake of its mask's dimensions."""
    if not is_flat(mask) or getattr(mask, "requires_grad", False) or problem.dropout_p or problem.device != "cpu":
        return False
    query, key, value = (tuple(each.shape) for each in tensors)
    if {len(query), len(key), len(value)} != {4} or 0 in (*query, *key, *value):
        return False
    if not query[0] == key[0] == value[0] or key[1] != value[1]:
        return False
    return problem.softmax_scale > 0 and (problem.enable_gqa or query[1] == key[1])


def refused(mask: Any, query: Any, key: Any) -> RankError:
    whole = query.shape[-2], key.shape[-2]
    return RankError(
        f"attn_mask has shape {tuple(mask.shape)}, and torch's kernel for this call reads two dimensions of it; pass "
        f"attn_mask.expand{whole}."
    )
