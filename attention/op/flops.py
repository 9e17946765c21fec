"""What FlopCounterMode counts of our operators, by torch's convention: products alone, and hidden keys counted as seen.

forward    Q K^T, P V                            2 B Hq Sq Skv (D + Dv)
backward   Q K^T again, dO V^T, P^T dO, dS K, dS^T Q    2 B Hq Sq Skv (3 D + 2 Dv)
"""

import sys
from typing import Any

import torch

from attention.call import Call, call_of
from attention.op.when_imported import when_imported

COUNTER = "torch.utils.flop_counter"


def forward(*arguments: Any, **_: Any) -> int:
    return 2 * _scores(call := call_of(*arguments)) * int(call.query.shape[-1] + call.value.shape[-1])


def backward(grad_out: Any, grad_lse: Any, query: Any, key: Any, value: Any, *rest: Any, **_: Any) -> int:
    call = call_of(query, key, value, *rest[3:])  # behind out, lse and wanted
    return 2 * _scores(call) * int(3 * query.shape[-1] + 2 * value.shape[-1])


def _scores(call: Call) -> int:
    """Scores of all heads. Packed lengths are read from the device, as torch's own formulas do."""
    batch, heads, rows, _ = map(int, call.query.shape)
    starts_q, starts_k = call.extras.cu_seqlens_q, call.extras.cu_seqlens_k
    if starts_q is None or starts_k is None:
        return batch * heads * rows * int(call.key.shape[2])
    longest = call.options
    lengths = zip(_each(starts_q, longest.max_seqlen_q), _each(starts_k, longest.max_seqlen_k), strict=True)
    return heads * sum(rows * keys for rows, keys in lengths)


def _each(starts: torch.Tensor, longest: int) -> list[int]:
    from torch._subclasses.fake_tensor import FakeTensor

    if isinstance(starts, FakeTensor) or starts.is_meta:  # there are no lengths to read: torch too takes the longest
        return [longest] * (starts.shape[0] - 1)
    found: list[int] = starts.diff().tolist()
    return found


def register() -> None:
    """Hand both formulas to torch's counter, once somebody imports that.

    Importing it here would import Triton with it, a tenth of a second or two of a first call's time.
    """
    when_imported(COUNTER, _register)


def _register() -> None:
    counter, ours = sys.modules[COUNTER], torch.ops.smscope
    counter.register_flop_formula(ours.attention_forward, get_raw=True)(forward)
    counter.register_flop_formula(ours.attention_backward, get_raw=True)(backward)
