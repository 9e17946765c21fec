"""Which calls of attention.sdpa on a GPU are kept once they were judged, and who serves the next ones like them.

The options of a kind are (is_causal, scale, enable_gqa, strict, only). A CausalBias, which holds nothing that is read,
stands in the place of is_causal as words.
"""

from typing import Any

import torch

from attention.call import Extras, Manner, Options
from attention.frontends.inputs import four_dimensional_mask
from attention.frontends.route import Route
from attention.judge.bias import is_causal_bias
from attention.kernels.common.layout import Where
from attention.kernels.torch.common.own import within
from attention.kernels.torch.common.readable import readable_mask
from attention.op.known import Given, Known, Serve, keepable, with_gradient
from attention.torch_private import torch_sdpa

KNOWN = Known()


def served_with(
    mask: Any,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    is_causal: bool,
    *options: Any,
) -> Any:
    """The result of a call with a mask or a CausalBias, where one of its kind was kept; else None."""
    if is_causal:
        return None
    if not is_causal_bias(mask):
        return KNOWN.served(query, key, value, (False, *options), (mask,))
    return KNOWN.served(query, key, value, (alignment_of(mask), *options))


def alignment_of(bias: Any) -> tuple[Any, ...]:
    """All that a CausalBias says."""
    return bias.variant.name, bias.seq_len_q, bias.seq_len_kv


def keep(
    route: Route,
    settled: bool,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    mask: torch.Tensor | None,
    options: tuple[Any, ...],
    causality: Options,
) -> None:
    """A call without dropout that went by this route, its tensors as the caller gave them.

    `settled`: it is torch's function's by now, whatever the route says. `causality`: as the operator takes it.
    """
    _, _, enable_gqa, strict, only = options
    trains, brought = with_gradient(query, key, value), [] if mask is None else [mask]
    if route.plan is None or route.fold or (strict and trains) or not keepable(query, key, value, options, brought):
        return

    def server(settled: bool) -> Serve | None:
        if settled or route.to_torch or route.kernel is not None:
            return _of_torch(route, settled, query, key, value, mask, causality, enable_gqa)
        return _of_operator(route, query, key, value, mask, causality, Manner(only or "", strict), trains)

    serve = server(settled)
    if serve is not None and route.tally is not None and not settled:
        from attention.op.by_plan import WhileNew

        late = server(True)
        serve = None if late is None else WhileNew(serve, late, route.tally)
    if serve is not None:
        KNOWN.keep(query, key, value, options, serve, () if mask is None else (mask,))


def _of_operator(
    route: Route,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    mask: torch.Tensor | None,
    causality: Options,
    manner: Manner,
    trains: bool,
) -> Serve | None:
    from attention.kernels.launch.forms import HEADS_FIRST  # with what launches, where something is launched
    from attention.op.by_plan import ByFlash, ByPlan, first_of, is_of_flash, read_in_place
    from attention.op.launched import bringing, launched, server_of
    from attention.op.operands import Operands

    if route.plan is None or (trains and mask is not None):
        return None
    operands = None if mask is None else Operands(("mask",), _four_dimensional, HEADS_FIRST)
    if route.plan.owner == "torch":
        if trains or not read_in_place(query, key, value):
            return None
        if mask is None and is_of_flash(route.plan):
            return ByFlash(HEADS_FIRST, True, causality.scale)
        return ByPlan(route.plan, HEADS_FIRST, operands)
    ready = launched(route.plan if route.tally is None else first_of(route.plan), query, key, value)
    if ready is None:
        return None
    if operands is not None and mask is not None:
        return bringing(ready, operands, query, key, [mask])
    return server_of(ready, causality, manner, trains)


def _four_dimensional(query: torch.Tensor, extras: Extras) -> Extras:
    mask: torch.Tensor = extras.mask
    return extras if mask.dim() == 4 else Extras(mask=four_dimensional_mask(mask, query.shape[:1]))


def _of_torch(
    route: Route,
    settled: bool,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    mask: torch.Tensor | None,
    causality: Options,
    enable_gqa: bool,
) -> Serve | None:
    """None where it would read copies, or make a mask of causality."""
    from attention.kernels.launch.forms import HEADS_FIRST
    from attention.op.by_plan import ByFlash, read_in_place

    if not read_in_place(query, key, value) or causality.bottom_right:
        return None
    if mask is not None and readable_mask(mask) is not mask:
        return None
    if route.kernel is not None and not settled:
        return ByFlash(HEADS_FIRST, causality.causal, causality.scale)
    return _by_torch(causality.causal, causality.scale, enable_gqa)


def _by_torch(is_causal: bool, scale: float | None, enable_gqa: bool) -> Serve:
    """Torch's function, but for a call inside of attention.install()'s override, behind which another one stands."""
    from attention.op.by_plan import function_options

    asked = function_options(is_causal, scale, enable_gqa)

    def serve(
        query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, where: Where, given: Given
    ) -> torch.Tensor | None:
        return torch_sdpa(query, key, value, *given, **asked) if within.own is None else None

    return serve
