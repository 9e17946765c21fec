"""Tensors as a caller gives them, made ready for the operator: judged, cast, and folded to four dimensions."""

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import torch

from attention.errors import ProblemError
from attention.problem import AttentionProblem

Triple = tuple[torch.Tensor, torch.Tensor, torch.Tensor]


def require_tensors(query: Any, key: Any, value: Any, attn_mask: Any) -> None:
    """Raise ProblemError for what is no torch tensor: an array, a list, None."""
    for name, given in (("query", query), ("key", key), ("value", value), ("attn_mask", attn_mask)):
        if not isinstance(given, torch.Tensor) and not (name == "attn_mask" and given is None):
            kind = type(given)
            what = kind.__name__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__name__}"
            raise ProblemError(f"{name} is a {what}; pass a torch.Tensor, such as torch.as_tensor({name}).")


def autocast(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor) -> Triple:
    """Under torch.autocast, what torch's own function does: all three in the autocast dtype, float64 left alone."""
    device = query.device.type
    if (
        device == "meta"
        or not torch.is_autocast_enabled(device)
        or torch.float64 in (query.dtype, key.dtype, value.dtype)
    ):
        return query, key, value
    dtype = torch.get_autocast_dtype(device)
    return query.to(dtype), key.to(dtype), value.to(dtype)


def four_dimensions(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, enable_gqa: bool) -> Triple:
    """Fold leading dimensions into one batch, and expand those that torch would broadcast (a view, stride 0)."""
    tensors = [t if t.dim() > 2 else t.unsqueeze(0) for t in (query, key, value)]
    keep = 3 if enable_gqa else 2  # with enable_gqa the heads may differ, and are not broadcast
    leading = [t.shape[:-keep] for t in tensors]
    if not leading[0] == leading[1] == leading[2]:
        shape = torch.broadcast_shapes(*leading)  # type: ignore[no-untyped-call]
        tensors = [t.expand(shape + t.shape[-keep:]) for t in tensors]
    q, k, v = (t if t.dim() == 4 else t.reshape((-1, *t.shape[-3:])) for t in tensors)
    return q, k, v


def validate(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attn_mask: torch.Tensor | None,
    dropout_p: float,
    is_causal: bool,
    scale: float | None,
    enable_gqa: bool,
) -> None:
    """Raise ProblemError where the inputs make no sense. What was sound once is not looked at again."""
    if query.is_nested or key.is_nested or value.is_nested:
        return
    mask_dtype = None if attn_mask is None else attn_mask.dtype
    if attn_mask is not None and is_causal:
        raise ProblemError("attn_mask and is_causal=True exclude each other; put the triangle into the mask.")
    tensors = tuple(Described(t.shape, t.dtype, t.device) for t in (query, key, value))
    _sound(tensors, mask_dtype, dropout_p, is_causal, scale, enable_gqa)


@dataclass(frozen=True)
class Described:
    """What a problem reads of a tensor."""

    shape: torch.Size
    dtype: torch.dtype
    device: torch.device


@lru_cache(maxsize=4096)
def _sound(
    tensors: tuple[Described, ...], mask_dtype: Any, dropout_p: float, causal: bool, scale: float | None, gqa: bool
) -> None:
    if any(0 in tensor.shape[:-1] for tensor in tensors):
        return  # torch knows what comes out of nothing
    mask = None if mask_dtype is None else Described(torch.Size(), mask_dtype, tensors[0].device)
    AttentionProblem.from_tensors(
        *tensors, causal=causal, scale=scale, enable_gqa=gqa, mask=mask, dropout_p=dropout_p, broadcast=True
    )
