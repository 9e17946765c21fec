"""Which calls of flash-attn's functions on a GPU are kept once they were judged, and the next ones like them.

The options of a kind are those that the caller wrote, whose equals are judged alike, and whether lse is asked for; its
tensors of features come in the order of OPERANDS.
"""

from functools import partial
from typing import Any

import torch

from attention.call import Manner, Options
from attention.frontends.flash_attn import casts
from attention.judge.arguments import OPEN
from attention.op.known import Known, Serve, keepable, with_gradient
from attention.op.plan import Plan

KNOWN = Known()
OPERANDS = ("alibi", "sinks", "seqused_q", "seqused_k", "leftpad_k", "cu_seqlens_q", "cu_seqlens_k")
BY_PLACE = 8  # features of flash_attn_varlen_func that may be given by place, ahead of block_table
_is_tracing = torch.compiler.is_dynamo_compiling
Maybe = torch.Tensor | None


def _served(
    starts: tuple[torch.Tensor, ...],
    longest: tuple[int, ...],
    /,
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    dropout_p: float = 0.0,
    softmax_scale: float | None = None,
    causal: bool = False,
    window_size: tuple[int | None, int | None] | None = OPEN,
    softcap: float | None = 0.0,
    alibi_slopes: Maybe = None,
    deterministic: bool = False,
    return_attn_probs: bool = False,
    *,
    sinks: Maybe = None,
    s_aux: Maybe = None,
    learnable_sink: Maybe = None,
    seqused_q: Maybe = None,
    seqused_k: Maybe = None,
    leftpad_k: Maybe = None,
    return_lse: bool = False,
    return_softmax_lse: bool = False,
    num_splits: int | None = None,
    pack_gqa: bool | None = None,
    sm_margin: int | None = None,
    strict: bool = False,
    only: str | None = None,
    **others: Any,
) -> Any:
    """The result where a call of this kind was kept, else None. Hints are ignored, as by the functions themselves."""
    if _is_tracing() or not KNOWN.calls or others or return_attn_probs is not False:
        return None
    if s_aux is not None or learnable_sink is not None:
        names = [each for each in (sinks, s_aux, learnable_sink) if each is not None]
        if len(names) > 1:
            return None
        sinks = names[0]
    with_lse = bool(return_lse or return_softmax_lse)
    options = (dropout_p, softmax_scale, causal, window_size, softcap, deterministic, strict, only, with_lse)
    if alibi_slopes is sinks is seqused_q is seqused_k is leftpad_k is None and not starts:
        return KNOWN.served(q, k, v, options)
    tensors = (alibi_slopes, sinks, seqused_q, seqused_k, leftpad_k, *starts)
    return KNOWN.served(q, k, v, (*options, *longest), tensors)


served = partial(_served, (), ())  # asked before flash_attn_func


def served_packed(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    cu_seqlens_q: torch.Tensor,
    cu_seqlens_k: torch.Tensor,
    max_seqlen_q: int | None,
    max_seqlen_k: int | None,
    *features: Any,
    block_table: None = None,
    **options: Any,
) -> Any:
    """The same before flash_attn_varlen_func. A longest length that is no int is read first, from the GPU maybe."""
    if type(max_seqlen_q) is not int or type(max_seqlen_k) is not int:
        return None
    if block_table is not None or len(features) > BY_PLACE or cu_seqlens_q is None or cu_seqlens_k is None:
        return None
    return _served((cu_seqlens_q, cu_seqlens_k), (max_seqlen_q, max_seqlen_k), q, k, v, *features, **options)


def keep(
    plan: Plan,
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    given: tuple[Any, ...],
    options: Options,
    manner: Manner,
    tensors: tuple[Maybe, ...] = (),
) -> None:
    """A call that this plan served. `given`: its options as the caller wrote them, `tensors` those of OPERANDS."""
    if not KNOWN.keeps(q):
        return
    trains, with_lse, packed = with_gradient(q, k, v), bool(given[8]), len(tensors) == len(OPERANDS)
    brought = [each for each in tensors if each is not None]
    others = tensors if brought else ()
    if not keepable(q, k, v, given, brought) or (trains and (manner.strict or with_lse or brought)):
        return
    if packed and not type(given[-1]) is type(given[-2]) is int:
        return
    from attention.kernels.launch.forms import PACKED, ROWS_OF_HEADS  # with what launches, where something is launched

    form = PACKED if packed else ROWS_OF_HEADS
    operands = None
    if brought:
        from attention.op.operands import Operands

        names = tuple(name for name, tensor in zip(OPERANDS, tensors, strict=False) if tensor is not None)
        operands = Operands(names, casts.every, form)
    from attention.op.by_plan import (
        ByFlash,
        ByFunction,
        ByPlan,
        asked_of_function,
        is_of_flash,
        one_or_both,
        read_in_place,
    )

    def server(plan: Plan) -> Serve | None:
        if plan.owner == "torch":
            if trains or not read_in_place(q, k, v):
                return None
            if packed or brought or with_lse:
                return ByPlan(plan, form, operands, with_lse)
            if (asked := asked_of_function(plan)) is not None:
                return ByFunction(form, asked)
            return ByFlash(form, True, options.scale) if is_of_flash(plan) else ByPlan(plan, form)
        from attention.op.launched import bringing, launched, server_of

        ready = launched(plan, q, k, v, form)
        if ready is None:
            return None
        if operands is not None:
            return bringing(ready, operands, q, k, brought, with_lse)
        return server_of(ready, options, manner, trains, with_lse)

    serve = one_or_both(plan, server)
    if serve is not None:
        KNOWN.keep(q, k, v, given, serve, others)
