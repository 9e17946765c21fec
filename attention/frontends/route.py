"""Where a call of attention.sdpa goes, judged once: torch's function, one kernel of torch's, or our operator."""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import torch

from attention.call import NONE_GIVEN, Extras, Options, given_of
from attention.choose.while_new import Tally
from attention.errors import ProblemError
from attention.forwarded import Wanted
from attention.frontends.inputs import symbolic
from attention.judge.shapes import (
    MASK_AND_CAUSAL,
    Described,
    checked,
    mask_that_fits,
    same_device,
    same_dtype,
    shapes_of,
    stretched,
)
from attention.kernels.torch import flash
from attention.kernels.torch.common.limits import needs_positive_scale
from attention.kernels.torch.common.own import in_a_graph
from attention.op.plan import Plan, plan_for, plan_of
from attention.op.served import SERVED_DEVICES
from attention.problem import AttentionProblem
from attention.torch_private import only_vmap_is_active
from microbench.errors import UnknownArch


@dataclass(frozen=True)
class Route:
    """Where a call goes: to torch's function or to the operator, and why no tuned kernel serves.

    `plan` is what the operator would look up, where shapes are known. `operator_could`: the operator would serve too.
    `kernel` is a kernel of torch's that its function would not choose. `tally` tells when a shape is torch's after all.
    """

    to_torch: bool = False
    lacks: str | None = None
    fold: bool = True
    plan: Plan | None = None
    operator_could: bool = False
    kernel: Callable[[torch.Tensor, torch.Tensor, torch.Tensor, bool, float | None], torch.Tensor] | None = None
    tally: Tally | None = None


ASKED_OF_TORCH = Route(to_torch=True)  # by sdpa_kernel(...), say: its caller names torch's backends, not ours


def route_of(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    mask: torch.Tensor | None,
    dropout_p: float,
    is_causal: bool,
    *options: Any,
) -> Route:
    """Raises ProblemError, UnsupportedError."""
    if in_a_graph(query):
        if mask is not None and is_causal:
            raise ProblemError(MASK_AND_CAUSAL)
        route = _traced(query, mask, dropout_p)
    else:
        with_grad = trained(query, key, value)
        try:
            route = _route(
                *(query.shape, key.shape, value.shape, query.dtype, key.dtype, value.dtype),
                *(query.device, key.device, value.device),
                *((None, None) if mask is None else (mask.shape, mask.dtype)),
                *(dropout_p, is_causal, *options),
                *(with_grad, with_grad and torch.are_deterministic_algorithms_enabled()),
            )
        except TypeError:
            if not any(symbolic(each.shape) for each in (query, key, value, mask) if each is not None):
                raise
            route = _traced(query, mask, dropout_p)  # make_fx and its kin: a symbol has no hash to look up by
    if route.to_torch and mask is not None and route.operator_could and only_vmap_is_active():
        # Torch's own rules for vmap fail for masks on a GPU (pytorch#161310); ours fold them into the batch.
        return replace(route, to_torch=False, fold=True)
    return route


def trained(*tensors: torch.Tensor) -> bool:
    """Whether gradients will be asked for; of a subclass only our operator knows how (DTensor's shards)."""
    return (
        torch.is_grad_enabled()
        and any(each.requires_grad for each in tensors)
        and all(type(each) in (torch.Tensor, torch.nn.Parameter) for each in tensors)
    )


def _unserved(device: str, dropout_p: float) -> str | None:
    """What the operator has no argument for, or no device."""
    if dropout_p > 0:
        return "No tuned kernel has dropout"
    return None if device in SERVED_DEVICES else f"No tuned kernel runs on {device} yet"


def _traced(query: torch.Tensor, attn_mask: torch.Tensor | None, dropout_p: float) -> Route:
    """In a graph shapes may be symbols, so that nothing is looked up by them: only what no kernel has is torch's."""
    lacks, could = _unserved(query.device.type, dropout_p), False
    if lacks is None and attn_mask is not None and attn_mask.is_floating_point():
        lacks, could = "No tuned kernel takes a float mask", True
    return Route(to_torch=lacks is not None, lacks=lacks, operator_could=could)


@lru_cache(maxsize=4096)
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
    bottom_right: bool,
    scale: float | None,
    enable_gqa: bool,
    only: str,
    with_grad: bool,
    deterministic: bool,  # decides which backward there is
) -> Route:
    """Judge a call and route it; what was sound once is not looked at again. Raises ProblemError, UnsupportedError."""
    if mask is not None and is_causal:
        raise ProblemError(MASK_AND_CAUSAL)
    tensors = (
        Described(query, query_dtype, query_device),
        Described(key, key_dtype, key_device),
        Described(value, value_dtype, value_device),
    )
    q, k, v = checked(stretched(shapes_of(*tensors), 3 if enable_gqa else 2))
    dtype, device = same_dtype(*tensors), same_device(*tensors)
    problem = None
    if 0 not in (*q[:-1], *k[:-1]):
        problem = AttentionProblem(
            *(math.prod(q[:-3]), q[-3], k[-3], q[-2], k[-2], q[-1], v[-1]),
            dtype=dtype,
            device=device.split(":")[0],
            causal=is_causal,
            scale=scale,
            enable_gqa=enable_gqa,
            mask="none" if mask_dtype is None else "bool" if mask_dtype == torch.bool else "float",
            dropout_p=dropout_p,
            alignment="bottom_right" if bottom_right else "top_left",
        )
    if mask is not None and mask_dtype is not None:
        mask_that_fits(Described(mask, mask_dtype, query_device), (*q[:-1], k[-2]))
    lacks = _unserved(query_device.type, dropout_p)
    fold = not (len(query) == len(key) == len(value) == 4 and query[0] == key[0] == value[0])
    # A kernel reads as many heads of value as key has, and of key as query has without enable_gqa.
    fold = fold or key[1] != value[1] or (not enable_gqa and query[1] != key[1])
    fold = fold or (mask is not None and len(mask) != 4)
    if lacks is not None or query_device.type == "meta":
        return Route(lacks is not None, lacks, fold)
    if problem is None and not enable_gqa and q[-3] != k[-3]:
        return ASKED_OF_TORCH  # which lets heads differ where there is nothing to compute
    try:
        if problem is not None:
            plan = plan_for(problem, query_device, only)
        else:
            folded = (torch.Size((shape[:-3].numel(), *shape[-3:])) for shape in map(torch.Size, (q, k, v)))
            asked = Options(causal=is_causal, bottom_right=bottom_right, scale=scale)
            given = NONE_GIVEN if mask_dtype is None else given_of(Extras(mask=Described(mask, mask_dtype, None)))
            plan = plan_of(*folded, query_dtype, query_device, given, -1, asked, only)
    except UnknownArch as error:
        return Route(True, f"No tuned kernel runs here: {str(error).rstrip('.')}", fold)
    # Torch's function takes lower-right causality as a mask alone; its kernels, which the operator calls, need none.
    as_mask = bottom_right and plan.fallback is None
    theirs = plan.owner == "torch" and not as_mask
    torch_could = needs_positive_scale(plan.problem) is None
    trains = with_grad and only != "smscope" and torch_could
    if trains and (theirs or not _trains(plan, query_device, deterministic)):
        return Route(True, plan.lacks, fold, plan, operator_could=True)  # torch's own backward needs its own forward
    whole = theirs and torch_could
    alone = whole and plan.forced and not (fold or with_grad or bottom_right) and mask is None
    kernel = flash.alone if alone else None
    tally = Tally() if plan.settles and not bottom_right else None
    return Route(whole, plan.lacks, fold, plan, operator_could=True, kernel=kernel, tally=tally)


def _trains(plan: Plan, device: torch.device, deterministic: bool) -> bool:
    """Whether a fused backward takes what our forward leaves."""
    from attention.op import backward  # where there are gradients at all

    return backward.route(plan.problem, device, Wanted(deterministic=deterministic)).lacks is None
