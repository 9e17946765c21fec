"""Which calls of attention.sdpa on a GPU are kept once they were judged, and who serves the next ones like them."""

from typing import Any

import torch

from attention.call import Manner, Options
from attention.frontends.route import Route
from attention.kernels.common.layout import Where
from attention.kernels.torch.common.own import within
from attention.kernels.torch.common.readable import all_readable
from attention.op.known import Known, Serve, keepable, with_gradient
from attention.torch_private import torch_flash, torch_sdpa

KNOWN = Known()


def keep(
    route: Route,
    settled: bool,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    is_causal: bool,
    scale: float | None,
    enable_gqa: bool,
    strict: bool,
    only: str | None,
) -> None:
    """A call without mask and dropout that went by this route for good, its tensors as the caller gave them.

    `settled`: it is torch's function's by now, whatever the route says.
    """
    options = (is_causal, scale, enable_gqa, strict, only)
    trains = with_gradient(query, key, value)
    if route.plan is None or route.fold or not keepable(query, key, value, options) or (strict and trains):
        return
    serve: Serve | None = None
    if settled or route.to_torch or route.kernel is not None:
        if all(given is read for given, read in zip((query, key, value), all_readable(query, key, value), strict=True)):
            alone = route.kernel is not None and not settled
            serve = _by_flash(is_causal, scale) if alone else _by_torch(is_causal, scale, enable_gqa)
    else:
        from attention.op.launched import launched, server_of  # launchers, where something is launched

        ready = launched(route.plan, query, key, value)
        if ready is not None:
            serve = server_of(ready, Options(causal=is_causal, scale=scale), Manner(only or "", strict), trains)
    if serve is not None:
        KNOWN.keep(query, key, value, options, serve)


def _by_torch(is_causal: bool, scale: float | None, enable_gqa: bool) -> Serve:
    """Torch's function, but for a call inside of attention.install()'s override, behind which another one stands."""
    asked: dict[str, Any] = {"is_causal": True} if is_causal else {}  # each further argument costs torch 0.1 us
    asked |= {} if scale is None else {"scale": scale}
    asked |= {"enable_gqa": True} if enable_gqa else {}

    def serve(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, where: Where) -> torch.Tensor | None:
        return torch_sdpa(query, key, value, **asked) if within.own is None else None

    return serve


def _by_flash(is_causal: bool, scale: float | None) -> Serve:
    """As kernels.torch.flash.alone, the one kernel that a route names, of tensors that can be read where they lie."""

    def serve(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, where: Where) -> torch.Tensor | None:
        out: torch.Tensor = torch_flash(query, key, value, 0.0, is_causal, False, scale=scale)[0]
        return out

    return serve
