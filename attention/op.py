"""attention.sdpa: torch's function, by the kernel that this machine's measurements choose.

An eager call whose chosen kernel is torch's is handed to torch's function whole, with its own backward; where no tuned
kernel could serve, with one FallbackWarning per distinct reason. A compiled graph holds the operator, which chooses
when it runs.

On a CPU small calls, and calls like one that was torch's, go to torch's function before they are judged: the result is
torch's own, as it would have been. What torch refuses is judged then, so that the error names what is wrong.
"""

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import torch

from attention import operator
from attention.errors import ProblemError, UnsupportedError
from attention.inputs import (
    autocast,
    four_dimensional_mask,
    four_dimensions,
    require_plain,
    require_tensors,
)
from attention.model import FEW_QUERIES
from attention.plan import Plan, plan_of, warn_once
from attention.problem import AttentionProblem
from attention.shapes import (
    MASK_AND_CAUSAL,
    Described,
    checked,
    mask_that_fits,
    same_device,
    same_dtype,
    shapes_of,
    stretched,
)
from attention.torch_limits import torch_needs_positive_scale
from microbench.errors import UnknownArch

# The operator's arguments that torch's function has not: slopes, sinks, cu_seqlens and longest lengths.
NOTHING_PACKED = (None, None, None, None, 0, 0)
NO_WINDOW = (False, -1, -1, 0.0)

# Bound here: whoever puts attention.sdpa in the place of torch's function must not be called back.
_torch_sdpa: Any = torch._C._nn.scaled_dot_product_attention
_Tensor = torch.Tensor
_is_tracing = torch.compiler.is_dynamo_compiling
# On a CPU a query and key of so many bytes together are torch's: 128 rows each of one head of 64 float32. Handing such
# a call to our kernel's threads takes about as long as torch takes for all of it, and judging it 2 us of 4 to 60.
SMALL_BYTES = 64 * 1024
MOST_KEPT = 4096
_torchs_kinds: set[tuple[Any, ...]] = set()  # kinds of CPU calls that were judged, warned of, and found to be torch's


@dataclass(frozen=True)
class Route:
    """Where a call goes: to torch's function or to the operator, and why no tuned kernel serves.

    `plan` is what the operator would look up, where shapes are known.
    """

    to_torch: bool = False
    lacks: str | None = None
    fold: bool = True
    plan: Plan | None = None


def sdpa(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attn_mask: torch.Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
    *,
    strict: bool = False,
    only: str | None = None,
) -> torch.Tensor:
    """`torch.nn.functional.scaled_dot_product_attention`, by the kernel that this machine's measurements choose.

    query (..., Hq, Sq, D), key (..., Hkv, Skv, D), value (..., Hkv, Skv, Dv) -> (..., Hq, Sq, Dv), top-left causal.
    attn_mask broadcasts to (..., Hq, Sq, Skv): bool, True may be seen; or floats, which are added to the scores.
    strict: where no tuned kernel can serve, raise UnsupportedError instead of warning and calling torch.
    only: 'smscope' or 'torch' narrows the choice to kernels of that owner.
    Raises ProblemError for inputs that describe no attention problem; ArgumentError, a TypeError, for a wrong type.
    """
    try:
        if (
            type(query) is _Tensor
            and only is None
            and strict is False
            and not _is_tracing()
            and query.is_cpu
            and dropout_p == 0.0
            and (scale is None or scale > 0.0)  # see torch_limits
            # Torch 2.13 reads past the end of a value that has fewer rows than key.
            and (key_bytes := key.nbytes) == value.nbytes
            and (enable_gqa is False or key.shape == value.shape)
            and (
                (0 < query.nbytes <= SMALL_BYTES - key_bytes and attn_mask is None)
                or _kind(query, key, attn_mask, is_causal, enable_gqa) in _torchs_kinds
            )
        ):
            if scale is None and enable_gqa is False:  # each further argument costs torch 0.1 us
                if is_causal is False:
                    return _torch_sdpa(query, key, value, attn_mask)  # type: ignore[no-any-return]
                return _torch_sdpa(query, key, value, attn_mask, is_causal=is_causal)  # type: ignore[no-any-return]
            return _torch_sdpa(  # type: ignore[no-any-return]
                query, key, value, attn_mask, 0.0, is_causal, scale=scale, enable_gqa=enable_gqa
            )
    except Exception:
        pass  # judged below, where the error names what is wrong
    require_tensors(("query", query), ("key", key), ("value", value))
    if attn_mask is not None:
        require_tensors(("attn_mask", attn_mask))
    query, key, value = autocast(query, key, value)
    if query.is_nested or key.is_nested or value.is_nested:
        route = Route(to_torch=True, lacks="No tuned kernel takes nested tensors")
    elif torch.compiler.is_compiling():
        if attn_mask is not None and is_causal:
            raise ProblemError(MASK_AND_CAUSAL)
        route = _traced(query, attn_mask, dropout_p)
    else:
        route = _route(
            *(query.shape, key.shape, value.shape, query.dtype, key.dtype, value.dtype),
            *(query.device, key.device, value.device),
            *((None, None) if attn_mask is None else (attn_mask.shape, attn_mask.dtype)),
            *(dropout_p, is_causal, scale, enable_gqa, only or ""),
        )
    if route.lacks is not None:
        if strict or only == "smscope":
            raise UnsupportedError(f"{route.lacks}; call without strict and only='smscope', and torch serves.")
        warn_once(route.lacks)
    if route.to_torch:
        if route.plan is not None and query.device.type == "cpu" and not (only or dropout_p):
            _keep(_kind(query, key, attn_mask, is_causal, enable_gqa))
        return _torch_sdpa(  # type: ignore[no-any-return]
            query, key, value, attn_mask, dropout_p, is_causal, scale=scale, enable_gqa=enable_gqa
        )
    q, k, v, mask = query, key, value, attn_mask
    if route.fold:
        q, k, v = four_dimensions(query, key, value, enable_gqa)
        leading = torch.broadcast_shapes(query.shape[:-3], key.shape[:-3], value.shape[:-3])  # type: ignore[no-untyped-call]
        mask = None if attn_mask is None else four_dimensional_mask(attn_mask, leading)
    plain = (*NOTHING_PACKED, is_causal, *NO_WINDOW, scale, only or "", strict)
    out, _ = operator.forward(q, k, v, mask, *plain, plan=None if route.fold or mask is not None else route.plan)
    if route.fold and query.dim() != 4:
        out = out.reshape(query.shape[:-1] + value.shape[-1:] if query.dim() < 4 else leading + out.shape[1:])
    result: torch.Tensor = out
    return result


def _kind(
    query: torch.Tensor, key: torch.Tensor, mask: torch.Tensor | None, is_causal: bool, enable_gqa: bool
) -> tuple[Any, ...]:
    """What decides whether a CPU call is torch's. A few queries are of one kind for every number of keys.

    A cache grows by a key a token: each length would be a new kind, and cost its token a choice.
    """
    shape = query.shape
    mask_dtype = None if mask is None else mask.dtype
    if shape[-2] < FEW_QUERIES:
        return query.dtype, is_causal, enable_gqa, mask_dtype, shape[-1]
    return query.dtype, is_causal, enable_gqa, mask_dtype, shape, key.shape


def _keep(kind: tuple[Any, ...]) -> None:
    if len(_torchs_kinds) >= MOST_KEPT:
        _torchs_kinds.clear()
    _torchs_kinds.add(kind)


def _unserved(device: str, dropout_p: float) -> str | None:
    """What the operator has no argument for, or no device."""
    if dropout_p > 0:
        return "No tuned kernel has dropout"
    return None if device in operator.SERVED_DEVICES else f"No tuned kernel runs on {device} yet"


def _traced(query: torch.Tensor, attn_mask: torch.Tensor | None, dropout_p: float) -> Route:
    """In a graph shapes may be symbols, so that nothing is looked up by them: only what no kernel has is torch's."""
    lacks = _unserved(query.device.type, dropout_p)
    if lacks is None and attn_mask is not None and attn_mask.is_floating_point():
        lacks = "No tuned kernel takes a float mask"
    return Route(to_torch=lacks is not None, lacks=lacks)


@lru_cache(maxsize=4096, typed=True)  # 1 and True are equal, and not the same argument
def _route(
    query: torch.Size,
    key: torch.Size,
    value: torch.Size,
    query_dtype: torch.dtype,
    key_dtype: torch.dtype,
    value_dtype: torch.dtype,
    query_device: torch.device,
    key_device: torch.device,
    value_device: torch.device,
    mask: torch.Size | None,
    mask_dtype: torch.dtype | None,
    dropout_p: float,
    is_causal: bool,
    scale: float | None,
    enable_gqa: bool,
    only: str,
) -> Route:
    """Judge a call and route it; what was sound once is not looked at again. Raises ProblemError, UnsupportedError."""
    require_plain(flags={"is_causal": is_causal, "enable_gqa": enable_gqa}, numbers={"dropout_p": dropout_p})
    if mask is not None and is_causal:
        raise ProblemError(MASK_AND_CAUSAL)
    tensors = (
        Described(query, query_dtype, query_device),
        Described(key, key_dtype, key_device),
        Described(value, value_dtype, value_device),
    )
    q, k, v = checked(stretched(shapes_of(*tensors), 3 if enable_gqa else 2))
    if 0 not in (*q[:-1], *k[:-1]):
        AttentionProblem.from_tensors(
            *tensors, causal=is_causal, scale=scale, enable_gqa=enable_gqa, dropout_p=dropout_p, broadcast=True
        )
    if mask is not None and mask_dtype is not None:
        mask_that_fits(Described(mask, mask_dtype, query_device), (*q[:-1], k[-2]))
    lacks = _unserved(query_device.type, dropout_p)
    fold = not (len(query) == len(key) == len(value) == 4 and query[0] == key[0] == value[0])
    fold = fold or (not enable_gqa and query[1] != key[1]) or (mask is not None and len(mask) != 4)
    if lacks is not None or query_device.type == "meta":
        return Route(lacks is not None, lacks, fold)
    folded = (torch.Size((shape[:-3].numel(), *shape[-3:])) for shape in map(torch.Size, (q, k, v)))
    none_packed = (False, False, -1, 0, 0)
    plain = (mask_dtype, *none_packed, is_causal, *NO_WINDOW, scale, only)
    same_dtype(*tensors)  # which from_tensors has not seen to where a size is 0
    same_device(*tensors)
    try:
        plan = plan_of(*folded, query_dtype, query_device, *plain)
    except UnknownArch as error:
        return Route(True, f"No tuned kernel runs here: {str(error).rstrip('.')}", fold)
    whole = plan.owner == "torch" and torch_needs_positive_scale(plan.problem) is None
    return Route(whole, plan.lacks, fold, plan)
