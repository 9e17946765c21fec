"""Attention of DTensors: sharded by batch or by heads, every rank attends to its own part, and nothing is sent.

    Shard(0)   query, key, value, out, lse; a mask and slopes where they have a batch
    Shard(1)   the same by heads, where the key heads of a rank serve the query heads of that rank
    packed     sequences lie in one batch: by heads only

What is not sharded with the others (a mask for all heads, say) has a gradient that every rank knows a part of.
"""

from typing import Any

import torch

from attention.call import TENSORS
from attention.features import OPERANDS
from attention.op.when_imported import when_imported

BATCH, HEADS = 0, 1  # dimensions of the operator's tensors


def register() -> None:
    when_imported("torch.distributed.tensor", _register)


def _register() -> None:
    try:
        from torch.distributed.tensor.experimental import register_sharding
    except ImportError:  # experimental: where it has moved, DTensor says itself that it has no strategy
        return

    ours = torch.ops.smscope
    register_sharding(ours.attention_forward.default)(_forward)
    register_sharding(ours.attention_backward.default)(_backward)


def _forward(query: Any, key: Any, value: Any, *rest: Any) -> list[tuple[list[Any], list[Any]]]:
    """(placements of out and lse, placements of the arguments), each of which needs no communication."""
    extras, plain = rest[: len(TENSORS)], [None] * len(rest[len(TENSORS) :])
    return [
        ([place] * 2, [place] * 3 + _placed(extras, place, query) + plain) for place in _placements(query, key, extras)
    ]


def _backward(grad_out: Any, grad_lse: Any, query: Any, key: Any, value: Any, *rest: Any) -> list[Any]:
    wanted, rest = rest[2], rest[3:]  # behind out and lse
    extras, plain = rest[: len(TENSORS)], [None] * len(rest[len(TENSORS) :])
    found = []
    for place in _placements(query, key, extras):
        inputs = _placed(extras, place, query)
        inputs += [None] * (len(OPERANDS) - len(inputs))  # torch leaves out last arguments with their defaults
        grads = [_gradient(given, want, place) for given, want in zip(inputs, wanted, strict=False)]
        of_lse = None if grad_lse is None else place
        arguments = [place, of_lse] + [place] * 5 + [None] + inputs[: len(extras)] + plain
        found.append(([place] * 3 + grads, arguments))
    return found


def _placements(query: Any, key: Any, extras: tuple[Any, ...]) -> list[Any]:
    from torch.distributed.tensor import Replicate, Shard

    places: list[Any] = [Replicate()]
    if all(each is None for each in extras[len(OPERANDS) :]):
        places.append(Shard(BATCH))
    # Heads that a rank has more of than another would leave their group: each must have as many.
    if query.shape[HEADS] % query.mesh.size() == 0 and key.shape[HEADS] % query.mesh.size() == 0:
        places.append(Shard(HEADS))
    return places


def _placed(extras: tuple[Any, ...], place: Any, query: Any) -> list[Any]:
    """Where the tensors of features lie when query, key and value lie at `place`; None for what is not given."""
    from torch.distributed.tensor import Replicate, Shard

    whole = Replicate()
    found: list[Any] = [None if each is None else whole for each in extras]
    if place == whole:
        return found
    for at, (operand, tensor) in enumerate(zip(OPERANDS, extras, strict=False)):
        if tensor is None:
            continue
        own = operand.axes[len(operand.axes) - len(tensor.shape) :].find("bh"[place.dim])
        if own >= 0 and not (operand.stretch and tensor.shape[own] == 1):
            found[at] = Shard(own)
    return found


def _gradient(given: Any, wanted: bool, place: Any) -> Any:
    from torch.distributed.tensor import Partial, Replicate

    if given is None or not wanted:
        return Replicate()  # of nothing
    return Partial() if given == Replicate() != place else given
