"""Where a call of attention.sdpa goes, judged once: torch's function, one kernel of torch's, or our operator."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import torch

from attention.call import NO_EXTRAS, Extras, Options
from attention.choose.while_new import Settling, Tally
from attention.errors import ProblemError
from attention.forwarded import Wanted
from attention.frontends.inputs import symbolic
from attention.judge.bias import MASK_AND_CAUSAL
from attention.judge.call import judged
from attention.judge.shapes import SDPA, Facts, facts_of
from attention.kernels.torch import flash
from attention.kernels.torch.common.limits import needs_positive_scale
from attention.kernels.torch.common.own import in_a_graph
from attention.op.plan import SERVED_DEVICES, Given, Plan, plan_for
from attention.torch_private import only_vmap_is_active
from microbench.errors import UnknownArch


@dataclass(frozen=True)
class Route:
    """Where a call goes: to torch's function or to the operator, and why no tuned kernel serves.

    `fold`: query, key and value have to be folded to four dimensions, or stretched, for the operator.
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
    if mask is not None and is_causal:
        raise ProblemError(MASK_AND_CAUSAL)
    if in_a_graph(query):
        route = _traced(query, mask, dropout_p)
    else:
        with_grad = trained(query, key, value)
        try:
            route = _route(
                facts_of(query),
                facts_of(key),
                facts_of(value),
                None if mask is None else facts_of(mask),
                dropout_p,
                is_causal,
                *options,
                with_grad,
                with_grad and torch.are_deterministic_algorithms_enabled(),
            )
        except TypeError:
            if not any(symbolic(each.shape) for each in (query, key, value, mask) if each is not None):
                raise
            route = _traced(query, mask, dropout_p)  # make_fx and its kin: a symbol has no hash to look up by
    if not route.to_torch and mask is not None and mask.is_floating_point() and _wants_gradient(mask):
        route = replace(route, to_torch=True)  # whose backward knows the mask's
    if route.to_torch and mask is not None and route.operator_could and only_vmap_is_active():
        # Torch's own rules for vmap fail for masks on a GPU (pytorch#161310); ours fold them into the batch.
        return replace(route, to_torch=False, fold=True)
    return route


def _wants_gradient(mask: torch.Tensor | None) -> bool:
    return mask is not None and torch.is_grad_enabled() and mask.requires_grad


def trained(*tensors: torch.Tensor) -> bool:
    """Whether gradients will be asked for; of a subclass only our operator knows how (DTensor's shards)."""
    return (
        torch.is_grad_enabled()
        and any(each.requires_grad for each in tensors)
        and all(type(each) in (torch.Tensor, torch.nn.Parameter) for each in tensors)
    )


def unserved(device: str, dropout_p: float) -> str | None:
    """What the operator has no argument for, or no device."""
    if dropout_p > 0:
        return "No tuned kernel has dropout"
    return None if device in SERVED_DEVICES else f"No tuned kernel runs on {device} yet"


def _traced(query: torch.Tensor, attn_mask: torch.Tensor | None, dropout_p: float) -> Route:
    """In a graph shapes may be symbols, so that nothing is looked up by them: only what no kernel has is torch's."""
    lacks, could = unserved(query.device.type, dropout_p), False
    floats = lacks is None and attn_mask is not None and attn_mask.is_floating_point()
    if floats and (query.device.type == "cpu" or _wants_gradient(attn_mask)):
        lacks, could = "No tuned kernel takes a float mask on the CPU, or one that wants a gradient", True
    return Route(to_torch=lacks is not None, lacks=lacks, operator_could=could)


@lru_cache(maxsize=4096)
def _route(
    query: Given,
    key: Given,
    value: Given,
    mask: Given | None,
    dropout_p: float,
    is_causal: bool,
    bottom_right: bool,
    scale: float | None,
    enable_gqa: bool,
    only: str,
    with_grad: bool,
    deterministic: bool,
) -> Route:
    q, k, v = Facts(*query), Facts(*key), Facts(*value)
    extras = NO_EXTRAS if mask is None else Extras(mask=Facts(*mask))
    options = Options(causal=is_causal, bottom_right=bottom_right, scale=scale)
    found = judged(SDPA, (q, k, v), extras, options, enable_gqa)
    if found.empty and not enable_gqa and found.heads_q != found.heads_kv:
        return ASKED_OF_TORCH  # which lets heads differ where there is nothing to compute
    problem = found.problem(options, extras, enable_gqa=enable_gqa, dropout_p=dropout_p)
    lacks = unserved(q.device.type, dropout_p)
    fold = not (len(q.shape) == len(k.shape) == len(v.shape) == 4 and q.shape[0] == k.shape[0] == v.shape[0])
    # A kernel reads as many heads of value as key has, and of key as query has without enable_gqa.
    fold = fold or k.shape[1] != v.shape[1] or (not enable_gqa and q.shape[1] != k.shape[1])
    if lacks is not None or q.device.type == "meta":
        return Route(lacks is not None, lacks, fold)
    try:
        plan = plan_for(found, problem, q.device, only)
    except UnknownArch as error:
        return Route(True, f"No tuned kernel runs here: {str(error).rstrip('.')}", fold)
    # Torch's function takes lower-right causality as a mask alone; its kernels, which the operator calls, need none.
    as_mask = bottom_right and plan.fallback is None
    theirs = plan.owner == "torch" and not as_mask
    torch_could = needs_positive_scale(plan.problem) is None
    trains = with_grad and only != "smscope" and torch_could
    if trains and (theirs or not _trains(plan, q.device, deterministic)):
        return Route(True, plan.lacks, fold, plan, operator_could=True)  # torch's own backward needs its own forward
    whole = theirs and torch_could
    alone = whole and plan.forced and not (fold or with_grad or bottom_right) and mask is None
    kernel = flash.alone if alone else None
    run = plan.run
    tally = Tally(run.tally.graphs_alone) if isinstance(run, Settling) and not bottom_right else None
    return Route(whole, plan.lacks, fold, plan, operator_could=True, kernel=kernel, tally=tally)


def _trains(plan: Plan, device: torch.device, deterministic: bool) -> bool:
    """Whether a fused backward takes what our forward leaves."""
    from attention.op import backward  # where there are gradients at all

    return backward.route(plan.problem, device, Wanted(deterministic=deterministic)).lacks is None
