"""smscope::attention_forward under torch.vmap: the mapped dimension is folded into the batch, and one kernel runs."""

from typing import Any

import torch

Maybe = torch.Tensor | None
TENSORS = 8  # arguments of the operator that are tensors, or None
MASK, ALIBI, SINKS, CU_SEQLENS_Q = 3, 4, 5, 6


def forward(info: Any, in_dims: tuple[int | None, ...], *inputs: Any) -> tuple[Any, tuple[int, int]]:
    """(out, lse) with the mapped dimension first. `in_dims` says where each argument has it, None for nowhere."""
    operator = torch.ops.smscope.attention_forward
    size, dims = info.batch_size, in_dims[:TENSORS]
    front = tuple(
        tensor if dim is None else tensor.movedim(dim, 0) for tensor, dim in zip(inputs[:TENSORS], dims, strict=True)
    )
    mapped = tuple(dim is not None for dim in dims)
    if mapped[SINKS] or inputs[CU_SEQLENS_Q] is not None:  # one set of sinks, and one packed batch, is all it takes
        calls = [
            operator(*(each[i] if of else each for each, of in zip(front, mapped, strict=True)), *inputs[TENSORS:])
            for i in range(size)
        ]
        out, lse = (torch.stack(results) for results in zip(*calls, strict=True))
        return (out, lse), (0, 0)
    batch = front[0].shape[int(mapped[0])]
    query, key, value = (_folded(tensor, of, size, batch) for tensor, of in zip(front[:3], mapped, strict=False))
    mask, alibi = front[MASK], front[ALIBI]
    if mask is not None and (mapped[MASK] or mask.shape[0] > 1):
        mask = _folded(mask, mapped[MASK], size, batch)
    if alibi is not None and (mapped[ALIBI] or alibi.dim() > 1):
        rows = alibi if alibi.dim() == 2 + mapped[ALIBI] else alibi.unsqueeze(-2)
        alibi = _folded(rows, mapped[ALIBI], size, batch)
    out, lse = operator(query, key, value, mask, alibi, *front[SINKS:], *inputs[TENSORS:])
    return (out.unflatten(0, (size, batch)), lse.unflatten(0, (size, batch))), (0, 0)


def _folded(tensor: torch.Tensor, mapped: bool, size: int, batch: int) -> torch.Tensor:
    """(size, B or 1, ...), or without the mapped dimension, as (size * B, ...): a view wherever strides can say it."""
    tensor = tensor if mapped else tensor.unsqueeze(0)
    return tensor.expand(size, batch, *tensor.shape[2:]).flatten(0, 1)
