"""smscope::attention_forward under torch.vmap: the mapped dimension is folded into the batch, and one kernel runs."""

from typing import Any

import torch

from attention.call import STARTS, TENSORS
from attention.features import OPERANDS

COUNT = 3 + len(TENSORS)  # arguments of the operator that are tensors, or None


def forward(info: Any, in_dims: tuple[int | None, ...], *inputs: Any) -> tuple[Any, tuple[int, int]]:
    """(out, lse) with the mapped dimension first. `in_dims` says where each argument has it, None for nowhere."""
    operator = torch.ops.smscope.attention_forward
    size, tensors, plain = info.batch_size, inputs[:COUNT], inputs[COUNT:]
    dims = in_dims[: len(tensors)]
    front = [tensor if dim is None else tensor.movedim(dim, 0) for tensor, dim in zip(tensors, dims, strict=True)]
    mapped = [dim is not None for dim in dims]
    packed = any(tensor is not None for tensor in tensors[COUNT - len(STARTS) :])
    one_for_all = any(of and operand.axes[0] != "b" for operand, of in zip(OPERANDS, mapped[3:], strict=False))
    if packed or one_for_all:  # one packed batch, and one set of sinks, is all that the operator takes
        calls = [
            operator(*(each[i] if of else each for each, of in zip(front, mapped, strict=True)), *plain)
            for i in range(size)
        ]
        out, lse = (torch.stack(results) for results in zip(*calls, strict=True))
        return (out, lse), (0, 0)
    batch = front[0].shape[int(mapped[0])]
    front[:3] = [_folded(tensor, of, size, batch) for tensor, of in zip(front[:3], mapped, strict=False)]
    for at, operand in enumerate(OPERANDS, 3):
        if at >= len(front) or front[at] is None or operand.axes[0] != "b":
            continue
        has_batch = front[at].dim() == len(operand.axes) + mapped[at]
        if mapped[at] or (has_batch and (not operand.stretch or front[at].shape[0] > 1)):
            tensor = front[at] if has_batch else front[at].unsqueeze(int(mapped[at]))
            front[at] = _folded(tensor, mapped[at], size, batch)
    out, lse = operator(*front, *plain)
    return (out.unflatten(0, (size, batch)), lse.unflatten(0, (size, batch))), (0, 0)


def _folded(tensor: torch.Tensor, mapped: bool, size: int, batch: int) -> torch.Tensor:
    """(size, B or 1, ...), or without the mapped dimension, as (size * B, ...): a view wherever strides can say it."""
    tensor = tensor if mapped else tensor.unsqueeze(0)
    return tensor.expand(size, batch, *tensor.shape[2:]).flatten(0, 1)
