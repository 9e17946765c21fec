"""Tensors as a caller gives them, made ready for the operator: judged, cast, and folded to four dimensions."""

from collections.abc import Callable
from functools import wraps
from typing import Any, ParamSpec, TypeVar

import torch
from torch.overrides import handle_torch_function, has_torch_function

from attention.errors import ArgumentError, kind_of

Triple = tuple[torch.Tensor, torch.Tensor, torch.Tensor]
Shape = tuple[int, ...]
P = ParamSpec("P")
R = TypeVar("R")


def require_tensors(*given: tuple[str, Any]) -> None:
    """Raise ArgumentError for what is no torch tensor: an array, a list, None."""
    for name, value in given:
        if not isinstance(value, torch.Tensor):
            raise ArgumentError(f"{name} is {kind_of(value)}; pass a torch.Tensor, such as torch.as_tensor({name}).")


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
    q, k, v = (t if t.dim() == 4 else t.reshape(t.shape[:-3].numel(), *t.shape[-3:]) for t in tensors)
    return q, k, v


def four_dimensional_mask(mask: torch.Tensor, leading: Shape) -> torch.Tensor:
    """A mask that broadcasts to (*leading, Hq, Sq, Skv), as one that broadcasts to (B, Hq, Sq, Skv)."""
    if mask.dim() < 4 or len(leading) == 1:
        return mask.reshape((1,) * (4 - mask.dim()) + mask.shape)
    # Several leading dimensions fold into one batch, in which no broadcast of a part of them can be said.
    mask = mask.expand(*leading, *mask.shape[-3:])
    return mask.reshape(torch.Size(leading).numel(), *mask.shape[-3:])


def unfolded(
    out: torch.Tensor, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, enable_gqa: bool
) -> torch.Tensor:
    """The result of folded tensors, (B, Hq, Sq, Dv), in the shape of torch's result."""
    if query.dim() == key.dim() == value.dim() == 4:
        return out
    keep = 3 if enable_gqa else 2
    leading = torch.broadcast_shapes(query.shape[:-keep], key.shape[:-keep], value.shape[:-keep])  # type: ignore[no-untyped-call]
    shape = leading + query.shape[-keep:-1] + value.shape[-1:]
    return out.reshape(shape)


def lower_right_mask(query: torch.Tensor, key: torch.Tensor) -> torch.Tensor:
    """A bool mask (Sq, Skv) by which the last query sees the last key."""
    rows, keys = query.shape[-2], key.shape[-2]
    return torch.ones(rows, keys, dtype=torch.bool, device=query.device).tril(keys - rows)


def symbolic(shape: Any) -> bool:
    """Whether a size is a symbol that stands for many, as when a graph is traced for every size."""
    return any(isinstance(size, torch.SymInt) for size in shape)


def overridable(known: Callable[..., Any] | None = None) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Hand a call whole to the mode, the subclass or the proxy that wants it, as torch's own functions do.

    `known` is asked before: it gives the result of a call that nobody wants and that was judged before, else None.
    """

    def overridden(function: Callable[P, R]) -> Callable[P, R]:
        @wraps(function)
        def call(*args: P.args, **kwargs: P.kwargs) -> R:
            found: R | None = None if known is None else known(*args, **kwargs)
            if found is not None:
                return found
            given = (*args, *kwargs.values())
            if has_torch_function(given):
                handled: R = handle_torch_function(call, given, *args, **kwargs)
                return handled
            return function(*args, **kwargs)

        return call

    return overridden
