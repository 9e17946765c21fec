"""attention.sdpa: torch's function, by the kernel that this machine's measurements choose.

An eager call whose chosen kernel is torch's is handed to torch's function whole, with its own backward; where no tuned
kernel could serve, with one FallbackWarning per distinct reason. A compiled graph holds the operator, which chooses
when it runs.

On a CPU small calls, and calls like one that was torch's, go to torch's function before they are judged: the result is
torch's own, as it would have been. What torch refuses is judged then, so that the error names what is wrong.
"""

from collections.abc import Set
from typing import Any

import torch
from torch.overrides import handle_torch_function, has_torch_function

from attention.call import NO_EXTRAS, Call, Extras, Manner, Options
from attention.choose.kinds import FEW_ON_HOST
from attention.errors import ProblemError, UnsupportedError
from attention.frontends.inputs import (
    autocast,
    four_dimensional_mask,
    four_dimensions,
    lower_right_mask,
    require_tensors,
    unfolded,
)
from attention.frontends.kept import KNOWN, alignment_of, keep, served_with
from attention.frontends.route import ASKED_OF_TORCH, Route, route_of
from attention.judge.arguments import number, require_bools
from attention.judge.bias import MASK_AND_CAUSAL, aligned_bottom_right, is_causal_bias
from attention.judge.flat_mask import is_flat, refused
from attention.kernels.torch.common import own
from attention.op import dispatch
from attention.op.plan import cpu_is_torchs, warn_once
from attention.torch_private import backends_are_restricted, devices, is_sharded_on_cpu, torch_sdpa

_Tensor = torch.Tensor
_is_tracing = torch.compiler.is_dynamo_compiling
_is_function_mode_on: Any = torch._C._is_torch_function_mode_enabled
# On a CPU calls with few keys (256 of one head of 64 float32), few queries (32 heads of 128), or few of both are
# torch's. Handing a small call to our kernel's threads takes about as long as torch takes for all of it, our kernel has
# a lane for each of 32 queries, and judging a call takes 2 us of 4 to 60.
FEW_KEYS_BYTES, FEW_QUERIES_BYTES, SMALL_BYTES = 64 * 1024, 16 * 1024, 128 * 1024
MOST_KEPT = 256
EVERY = frozenset({"every"})  # a cache grows by a key a token: each length would cost its token a choice
# CPU calls that were judged, warned of, and found to be torch's: of these queries and flags, by the shape of key.
_torchs_kinds: dict[tuple[Any, ...], Set[Any]] = {}
_cpu_is_torchs: bool | None = None  # every call without a mask is, as plan.cpu_is_torchs says; None until it is asked


def sdpa(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attn_mask: torch.Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
    strict: bool = False,  # by keyword, please: were that enforced, Python 3.11 and later would call 0.3 us slower
    only: str | None = None,
) -> torch.Tensor:
    """`torch.nn.functional.scaled_dot_product_attention`, by the kernel that this machine's measurements choose.

    query (..., Hq, Sq, D), key (..., Hkv, Skv, D), value (..., Hkv, Skv, Dv) -> (..., Hq, Sq, Dv), top-left causal.
    attn_mask broadcasts to (..., Hq, Sq, Skv): bool, True may be seen; or floats, which are added to the scores; or
    a CausalBias of torch.nn.attention.bias, upper left or lower right, of which no mask is made.
    Where torch.nn.attention.sdpa_kernel allows some of torch's backends, torch serves, unless only='smscope'.
    strict: where no tuned kernel can serve, raise UnsupportedError instead of warning and calling torch.
    only: 'smscope' or 'torch' narrows the choice to kernels of that owner.
    Raises ProblemError, a ValueError and a RuntimeError, for inputs that describe no attention problem; ArgumentError,
    a TypeError as well, for a wrong type: whatever torch raises for the same call is what this can be caught as.
    """
    is_tracing = _is_tracing()  # first: torch 2.10's compiler does not know the questions below
    if (
        not is_tracing
        and KNOWN.calls
        and type(dropout_p) is float
        and dropout_p == 0.0
        and (is_causal is False or is_causal is True)
        and (enable_gqa is False or enable_gqa is True)
        and (only == "smscope" or not backends_are_restricted())
    ):
        known: torch.Tensor | None
        if attn_mask is None:
            known = KNOWN.served(query, key, value, (is_causal, scale, enable_gqa, strict, only))
        elif type(attn_mask) is _Tensor and is_causal is False:  # served_with would take 0.3 us to call the same
            known = KNOWN.served(query, key, value, (False, scale, enable_gqa, strict, only), (attn_mask,))
        else:
            known = served_with(attn_mask, query, key, value, is_causal, scale, enable_gqa, strict, only)
        if known is not None:
            return known
    if type(attn_mask) is _Tensor and type(query) is _Tensor and own.is_narrower(attn_mask, query):
        attn_mask = attn_mask.double()
    try:
        if (
            not is_tracing
            and type(query) is _Tensor
            and only is None
            and strict is False
            and not _is_function_mode_on()
            and (not devices._initialized or query.is_cpu)
            # Torch 2.13 reads past the end of a value that has fewer rows than key, unless it has more heads.
            and (key_bytes := key.nbytes) == value.nbytes
            # A CausalBias holds nothing that could be added. Torch 2.13 takes a mask beside is_causal: refused here.
            and (attn_mask is None or (type(attn_mask) is _Tensor and is_causal is False))
            and dropout_p == 0.0
            and (scale is None or scale > 0.0)  # see needs_positive_scale
            and (
                (
                    key_bytes > 0
                    and (
                        (attn_mask is None and (_cpu_is_torchs if _cpu_is_torchs is not None else _ask()))
                        or key_bytes <= FEW_KEYS_BYTES
                        or 0 < (query_bytes := query.nbytes) <= FEW_QUERIES_BYTES
                        or (query_bytes <= SMALL_BYTES and key_bytes <= SMALL_BYTES)
                    )
                )
                or _is_known(query, key, attn_mask, is_causal, enable_gqa)
            )
        ):
            # Each further argument costs torch 0.1 us.
            if scale is None:
                if is_causal is False:
                    if enable_gqa is False:
                        if attn_mask is None:
                            return torch_sdpa(query, key, value)
                        return torch_sdpa(query, key, value, attn_mask)
                    return torch_sdpa(query, key, value, attn_mask, enable_gqa=enable_gqa)
                if enable_gqa is False:
                    return torch_sdpa(query, key, value, is_causal=is_causal)
                return torch_sdpa(query, key, value, is_causal=is_causal, enable_gqa=enable_gqa)
            return torch_sdpa(query, key, value, attn_mask, 0.0, is_causal, scale=scale, enable_gqa=enable_gqa)
    except Exception:
        pass  # judged below, where the error names what is wrong
    return _judged(query, key, value, attn_mask, dropout_p, is_causal, scale, enable_gqa, strict, only)


def _judged(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attn_mask: torch.Tensor | None,
    dropout_p: float,
    is_causal: bool,
    scale: float | None,
    enable_gqa: bool,
    strict: bool,
    only: str | None,
) -> torch.Tensor:
    biased = attn_mask is not None and is_causal_bias(attn_mask)
    tensors = (query, key, value, None if biased else attn_mask)
    given, nested = (query, key, value), False
    if has_torch_function(tensors):  # a mode, a subclass, or a proxy that traces the call
        nested = any(
            type(each) is not torch.Tensor and isinstance(each, torch.Tensor) and each.is_nested for each in tensors
        )
        if not nested:
            options: Any = {"attn_mask": attn_mask, "dropout_p": dropout_p, "is_causal": is_causal, "scale": scale}
            options |= {"enable_gqa": enable_gqa, "strict": strict, "only": only}
            handled: torch.Tensor = handle_torch_function(sdpa, tensors, query, key, value, **options)
            return handled
    require_tensors(("query", query), ("key", key), ("value", value))
    if attn_mask is not None:
        require_tensors(("attn_mask", attn_mask))
    flags: tuple[object, object] = (is_causal, enable_gqa)  # whatever the annotations say
    if type(flags[0]) is not bool or type(flags[1]) is not bool:
        require_bools(is_causal=is_causal, enable_gqa=enable_gqa)
    if type(dropout_p) is not float:
        dropout_p = number("dropout_p", dropout_p)
    if scale is not None and type(scale) is not float:
        scale = number("scale", scale)
    query, key, value = autocast(query, key, value)
    bottom_right = False
    asked: Any = is_causal
    if biased and not nested:
        if is_causal:
            raise ProblemError(MASK_AND_CAUSAL)
        asked = alignment_of(attn_mask)
        bottom_right = aligned_bottom_right(attn_mask, query.shape, key.shape)
        attn_mask, is_causal = None, True
    if nested or query.is_nested or key.is_nested or value.is_nested:
        route = Route(to_torch=True, lacks="No tuned kernel takes nested tensors")
    elif only != "smscope" and backends_are_restricted():
        route = ASKED_OF_TORCH
    else:
        route = route_of(
            query, key, value, attn_mask, dropout_p, is_causal, bottom_right, scale, enable_gqa, only or ""
        )
    if route.lacks is not None:
        if strict or only == "smscope":
            raise UnsupportedError(f"{route.lacks}; call without strict and only='smscope', and torch serves.")
        warn_once(route.lacks)
    settled = route.tally is not None and route.tally.settled()
    if route.plan is not None and not dropout_p and KNOWN.keeps(query):
        causality = Options(causal=is_causal, bottom_right=bottom_right, scale=scale)
        keep(route, settled, *given, attn_mask, (asked, scale, enable_gqa, strict, only), causality)
    if route.kernel is not None and not settled:
        return route.kernel(query, key, value, is_causal, scale)
    # Of the kernels of torch's function torch shards none that runs on a CPU, and our operator by batch and heads.
    if (route.to_torch or settled) and (dropout_p or not is_sharded_on_cpu(query)):
        # With gradients a call is torch's even where ours is picked without.
        if (
            query.is_cpu
            and route.plan is not None
            and route.plan.owner == "torch"
            and not (only or dropout_p or bottom_right)
        ):
            _keep(query, key, attn_mask, is_causal, enable_gqa)
        if bottom_right:  # torch's own function takes a CausalBias by the name that attention.sdpa may stand for
            attn_mask, is_causal = lower_right_mask(query, key), False
        torchs = own.scaled_dot_product_attention
        try:
            return torchs(query, key, value, attn_mask, dropout_p, is_causal, scale, enable_gqa)
        except IndexError as error:
            if is_flat(attn_mask):
                raise refused(attn_mask, query, key) from error
            raise
    q, k, v, mask = query, key, value, attn_mask
    if route.fold:
        q, k, v = four_dimensions(query, key, value, enable_gqa)
    if attn_mask is not None and (route.fold or attn_mask.dim() != 4):
        leading = torch.broadcast_shapes(query.shape[:-3], key.shape[:-3], value.shape[:-3])  # type: ignore[no-untyped-call]
        mask = four_dimensional_mask(attn_mask, leading)
    extras = NO_EXTRAS if mask is None else Extras(mask=mask)
    options = Options(causal=is_causal, bottom_right=bottom_right, scale=scale)
    call = Call(q, k, v, extras, options, Manner(only or "", strict))
    out, _ = dispatch.forward(call, None if route.fold or mask is not None else route.plan)
    if route.fold:
        out = unfolded(out, query, key, value, enable_gqa)
    result: torch.Tensor = out
    return result


def _ask() -> bool:
    global _cpu_is_torchs
    _cpu_is_torchs = cpu_is_torchs()
    return _cpu_is_torchs


def _kind(query: torch.Tensor, mask: torch.Tensor | None, is_causal: bool, enable_gqa: bool) -> tuple[Any, ...]:
    return query.shape, query.dtype, is_causal, enable_gqa, None if mask is None else mask.dtype


def _is_known(
    query: torch.Tensor, key: torch.Tensor, mask: torch.Tensor | None, is_causal: bool, enable_gqa: bool
) -> bool:
    keys = _torchs_kinds.get(_kind(query, mask, is_causal, enable_gqa))
    return keys is not None and (keys is EVERY or key.shape in keys)


def _keep(query: torch.Tensor, key: torch.Tensor, mask: torch.Tensor | None, is_causal: bool, enable_gqa: bool) -> None:
    """The next call like this one is torch's before it is judged. With a few queries every number of keys is alike."""
    if len(_torchs_kinds) >= MOST_KEPT:
        _torchs_kinds.clear()
    kind = _kind(query, mask, is_causal, enable_gqa)
    known = _torchs_kinds.get(kind, frozenset())
    if query.shape[-2] < FEW_ON_HOST:
        _torchs_kinds[kind] = EVERY
    else:
        _torchs_kinds[kind] = {key.shape} if len(known) >= MOST_KEPT else {*known, key.shape}
