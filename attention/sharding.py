"""Attention of DTensors: sharded by batch or by heads, every rank attends to its own part, and nothing is sent.

    Shard(0)   query, key, value, out, lse; a mask and slopes where they have a batch
    Shard(1)   the same by heads, where the key heads of a rank serve the query heads of that rank
    packed     sequences lie in one batch: by heads only

What is not sharded with the others (a mask for all heads, say) has a gradient that every rank knows a part of.
"""

from typing import Any

import torch

from attention.when_imported import when_imported

MASK, ALIBI, SINKS = 0, 1, 2  # among the features
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
    features, plain = rest[:5], [None] * len(rest[5:])
    return [
        ([place] * 2, [place] * 3 + _placed(features, place, query) + plain)
        for place in _placements(query, key, features)
    ]


def _backward(grad_out: Any, grad_lse: Any, query: Any, key: Any, value: Any, *rest: Any) -> list[Any]:
    features, plain = rest[2:7], [None] * len(rest[7:])
    found = []
    for place in _placements(query, key, features):
        inputs = _placed(features, place, query)
        grads = [_gradient(given, want, place) for given, want in zip(inputs, rest[-1], strict=False)]
        of_lse = None if grad_lse is None else place
        found.append(([place] * 3 + grads, [place, of_lse] + [place] * 5 + inputs + plain))
    return found


def _placements(query: Any, key: Any, features: tuple[Any, ...]) -> list[Any]:
    from torch.distributed.tensor import Replicate, Shard

    places: list[Any] = [Replicate()]
    if features[3] is None:
        places.append(Shard(BATCH))
    # Heads that a rank has more of than another would leave their group: each must have as many.
    if query.shape[HEADS] % query.mesh.size() == 0 and key.shape[HEADS] % query.mesh.size() == 0:
        places.append(Shard(HEADS))
    return places


def _placed(features: tuple[Any, ...], place: Any, query: Any) -> list[Any]:
    """Where the tensors of features lie when query, key and value lie at `place`; None for what is not given."""
    from torch.distributed.tensor import Replicate, Shard

    whole = Replicate()
    found: list[Any] = [None if each is None else whole for each in features]
    if place == whole:
        return found
    mask, alibi, sinks = features[:3]
    if mask is not None and mask.shape[place.dim] == query.shape[place.dim] > 1:
        found[MASK] = place
    if alibi is not None and (place.dim == HEADS or len(alibi.shape) == 2):
        found[ALIBI] = Shard(place.dim if len(alibi.shape) == 2 else 0)
    if sinks is not None and place.dim == HEADS:
        found[SINKS] = Shard(0)
    return found


def _gradient(given: Any, wanted: bool, place: Any) -> Any:
    from torch.distributed.tensor import Partial, Replicate

    if given is None or not wanted:
        return Replicate()  # of nothing
    return Partial() if given == Replicate() != place else given
