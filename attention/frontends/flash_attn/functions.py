"""attention.flash_attn_func and flash_attn_varlen_func: flash-attn's signatures and conventions, by the same operator.

Tensors are (B, S, H, D), or packed (T, H, D) with cu_seqlens; causality and windows are aligned bottom-right. What
changes a result and is not served is refused by name; hints about speed are taken and ignored, as explain says.
"""

from typing import Any

import torch

from attention.call import TENSORS, Call, Extras, Manner, Options
from attention.frontends.flash_attn import casts, used_rows
from attention.frontends.flash_attn.arguments import (
    ALL_ROWS,
    ROWS,
    FlashExtras,
    extras_of,
    longest_of,
    options_of,
    refuse_others,
)
from attention.frontends.flash_attn.judge import judge
from attention.frontends.flash_attn.kept import keep, served, served_packed
from attention.frontends.inputs import autocast, overridable, require_tensors
from attention.judge.arguments import OPEN, flag, one_of
from attention.judge.shapes import FLASH, PACKED
from attention.op import dispatch
from attention.op.plan import Plan

NAMES = (*map(FLASH.called, TENSORS), *ROWS)
Pair = tuple[torch.Tensor, torch.Tensor]
Out = torch.Tensor | Pair | tuple[torch.Tensor, torch.Tensor, None]


@overridable(served)
def flash_attn_func(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    dropout_p: float = 0.0,
    softmax_scale: float | None = None,
    causal: bool = False,
    window_size: tuple[int | None, int | None] | None = OPEN,
    softcap: float | None = 0.0,
    alibi_slopes: torch.Tensor | None = None,
    deterministic: bool = False,
    return_attn_probs: bool = False,
    *,
    sinks: torch.Tensor | None = None,
    s_aux: torch.Tensor | None = None,
    learnable_sink: torch.Tensor | None = None,
    seqused_q: torch.Tensor | None = None,
    seqused_k: torch.Tensor | None = None,
    leftpad_k: torch.Tensor | None = None,
    return_lse: bool = False,
    return_softmax_lse: bool = False,
    num_splits: int | None = None,
    pack_gqa: bool | None = None,
    sm_margin: int | None = None,
    strict: bool = False,
    only: str | None = None,
    **others: Any,
) -> Out:
    """Attention of q (B, Sq, Hq, D), k (B, Skv, Hkv, D) and v (B, Skv, Hkv, Dv): out (B, Sq, Hq, Dv).

    causal: the last query sees the last key; query i sees keys up to i + Skv - Sq.
    window_size: how many keys left and right of there are seen as well; -1 or None is all.
    softcap: scores become softcap * tanh(score / softcap); 0.0 or None is none.
    alibi_slopes: (Hq,) or (B, Hq); -slope * |i + Skv - Sq - j| is added to the score of query i and key j.
    sinks: (Hq,), one more logit in each query's denominator, which weighs no value. s_aux (FlashAttention-3) and
        learnable_sink (FlashAttention-4) are names of the same.
    seqused_q, seqused_k, leftpad_k: (B,) int32 or int64; row b uses its first seqused_q[b] queries, and its keys from
        leftpad_k[b] to seqused_k[b]. Sq and Skv above are the numbers used; a query past them gives 0, and lse -inf.
        On a GPU kernels of ours read these numbers themselves; with gradients, in a compiled graph and by torch's
        kernels the rows become packed sequences, for which k and v are copied where batch and sequence do not lie as
        one dimension in memory.
    return_lse, return_softmax_lse: (out, lse) with lse (B, Hq, Sq), the natural logarithm of the denominator, sinks
        included. return_attn_probs: (out, lse, None), as without dropout nothing else is kept.
    deterministic: nothing to choose, the backward always is.
    num_splits, pack_gqa, sm_margin: hints, ignored; others are listed in attention.frontends.flash_attn.arguments.
    strict, only: as in attention.sdpa. A query that sees nothing gives 0, and lse -inf (its sink where there is one).
    A number may be Python's, NumPy's, or a tensor without dimensions; one on a GPU is waited for.
    Raises ProblemError; ArgumentError, a TypeError, for a wrong type; UnsupportedError for dropout_p above 0, and for
    arguments of flash-attn that no kernel here serves.
    """
    if others:
        refuse_others("flash_attn_func", others)
    require_tensors(("q", q), ("k", k), ("v", v))
    q, k, v = autocast(q, k, v)
    if s_aux is not None or learnable_sink is not None:
        sinks = one_of(sinks=sinks, s_aux=s_aux, learnable_sink=learnable_sink)
    extras = extras_of(alibi_slopes, sinks, (seqused_q, seqused_k, leftpad_k), others)
    if extras is not ALL_ROWS:
        _require_tensors_in(extras)
    options = options_of(softmax_scale, causal, window_size, softcap, others)
    manner = Manner(only or "", strict, flag("deterministic", deterministic))
    with_lse = return_lse or return_softmax_lse
    plan = judge(FLASH, q, k, v, dropout_p, options, extras, manner.only)
    if extras.parts() == 1 or plan is not None:
        heads_first = (q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2))
        operands = extras.operands if extras.parts() == 1 else extras.ranged()
        out, lse = _forward(*heads_first, options, operands, manner, plan)
        out = out.transpose(1, 2)
        if plan is not None and not (others or return_attn_probs):
            given = (dropout_p, softmax_scale, causal, window_size, softcap, deterministic, strict, only, with_lse)
            keep(plan, q, k, v, given, options, manner, (alibi_slopes, sinks, *extras[1:]))
    else:
        batch, rows = q.shape[:2]
        flat = (q.flatten(0, 1), k.flatten(0, 1), v.flatten(0, 1))
        extras = extras.starting(*used_rows.starts_of_batch(q, k))
        options = options._replace(max_seqlen_q=rows, max_seqlen_k=k.shape[1])
        used_rows.check_on_the_cpu(options, extras)
        out, lse = _packed(*flat, options, extras, manner, None)
        out = out.reshape(batch, rows, *out.shape[1:])
        lse = lse.reshape(lse.shape[0], batch, rows).transpose(0, 1).contiguous()
    return _returned(out, lse, with_lse, return_attn_probs)


@overridable(served_packed)
def flash_attn_varlen_func(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    cu_seqlens_q: torch.Tensor,
    cu_seqlens_k: torch.Tensor,
    max_seqlen_q: int | None,
    max_seqlen_k: int | None,
    dropout_p: float = 0.0,
    softmax_scale: float | None = None,
    causal: bool = False,
    window_size: tuple[int | None, int | None] | None = OPEN,
    softcap: float | None = 0.0,
    alibi_slopes: torch.Tensor | None = None,
    deterministic: bool = False,
    return_attn_probs: bool = False,
    block_table: None = None,
    *,
    sinks: torch.Tensor | None = None,
    s_aux: torch.Tensor | None = None,
    learnable_sink: torch.Tensor | None = None,
    seqused_q: torch.Tensor | None = None,
    seqused_k: torch.Tensor | None = None,
    leftpad_k: torch.Tensor | None = None,
    return_lse: bool = False,
    return_softmax_lse: bool = False,
    num_splits: int | None = None,
    pack_gqa: bool | None = None,
    sm_margin: int | None = None,
    strict: bool = False,
    only: str | None = None,
    **others: Any,
) -> Out:
    """Attention of packed sequences: q (Tq, Hq, D), k (Tkv, Hkv, D), v (Tkv, Hkv, Dv) -> out (Tq, Hq, Dv).

    Sequence b has the queries cu_seqlens_q[b] to cu_seqlens_q[b + 1] and the keys cu_seqlens_k[b] to
    cu_seqlens_k[b + 1]; both are (B + 1,) on the device of q, int32, or int64, which is cast at each call. No sequence
    is longer than max_seqlen_q or max_seqlen_k. On the CPU that is checked; on a GPU it would wait for the device, and
    is the caller's word. A length that is None is read from cu_seqlens: on a GPU that waits for the device, as a
    tensor there does, and in a compiled graph the number of tokens stands for it.
    Everything else as in flash_attn_func, for each sequence with its own lengths; alibi_slopes (Hq,) or (B, Hq);
    seqused_q, seqused_k and leftpad_k (B,) count from where the sequence begins, and no sequence may use more than
    max_seqlen_q or max_seqlen_k; lse is (Hq, Tq). Rows that belong to no sequence are 0 and -inf on the CPU; on a GPU
    nobody writes them. block_table, of a paged cache, must be None.
    """
    if others or block_table is not None:
        refuse_others("flash_attn_varlen_func", {"block_table": block_table, **others})
    require_tensors(("q", q), ("k", k), ("v", v), ("cu_seqlens_q", cu_seqlens_q), ("cu_seqlens_k", cu_seqlens_k))
    q, k, v = autocast(q, k, v)
    if s_aux is not None or learnable_sink is not None:
        sinks = one_of(sinks=sinks, s_aux=s_aux, learnable_sink=learnable_sink)
    starts = (cu_seqlens_q, cu_seqlens_k)
    extras = extras_of(alibi_slopes, sinks, (seqused_q, seqused_k, leftpad_k), others, starts)
    _require_tensors_in(extras)
    longest = (
        _longest("max_seqlen_q", max_seqlen_q, cu_seqlens_q, q),
        _longest("max_seqlen_k", max_seqlen_k, cu_seqlens_k, k),
    )
    options = options_of(softmax_scale, causal, window_size, softcap, others, longest)
    manner = Manner(only or "", strict, flag("deterministic", deterministic))
    plan = judge(PACKED, q, k, v, dropout_p, options, extras, manner.only)
    if not cu_seqlens_q.dtype is cu_seqlens_k.dtype is torch.int32:
        extras = extras.starting(*casts.in_32_bits(*starts))
    if extras.parts() > 1 and plan is None:
        used_rows.check_on_the_cpu(options, extras)
        options = used_rows.with_room(options, q, k, v)
    out, lse = _packed(q, k, v, options, extras, manner, plan)
    with_lse = return_lse or return_softmax_lse
    if plan is not None and not (others or return_attn_probs):
        given = (dropout_p, softmax_scale, causal, window_size, softcap, deterministic, strict, only, with_lse)
        tensors = (alibi_slopes, sinks, *extras[1:], *starts)
        keep(plan, q, k, v, (*given, max_seqlen_q, max_seqlen_k), options, manner, tensors)
    return _returned(out, lse, with_lse, return_attn_probs)


def _packed(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    options: Options,
    extras: FlashExtras,
    manner: Manner,
    plan: Plan | None,
) -> Pair:
    """Out (Tq, Hq, Dv) and lse (Hq, Tq) of packed sequences, or of what they use: with a plan as a kernel reads it."""
    operands = extras.operands
    if extras.parts() > 1:
        operands = used_rows.split(extras) if plan is None else extras.ranged()
    heads_first = (q.transpose(0, 1)[None], k.transpose(0, 1)[None], v.transpose(0, 1)[None])
    out, lse = _forward(*heads_first, options, operands, manner, plan)
    out, lse = out[0].transpose(0, 1), lse[0]
    if extras.seqused_q is not None and plan is None:
        unused = used_rows.unused_queries(operands.cu_seqlens_q, extras, q.shape[0])
        out, lse = out.masked_fill(unused[:, None, None], 0.0), lse.masked_fill(unused, -torch.inf)
    return out, lse


def _forward(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    options: Options,
    operands: Extras,
    manner: Manner,
    plan: Plan | None,
) -> Pair:
    """The operator, on tensors with the heads first."""
    operands = casts.operators(query, operands)
    return dispatch.forward(Call(query, key, value, operands, options, manner), plan)


def _returned(out: torch.Tensor, lse: torch.Tensor, with_lse: bool, with_probabilities: bool) -> Out:
    if with_probabilities:
        return out, lse, None
    return (out, lse) if with_lse else out


def _require_tensors_in(extras: FlashExtras) -> None:
    for name, given in zip(NAMES, (*extras.operands, *extras[1:]), strict=True):
        if given is not None and not isinstance(given, torch.Tensor):
            require_tensors((name, given))


def _longest(name: str, given: Any, starts: torch.Tensor, packed: torch.Tensor) -> int:
    if type(given) is int:
        return given
    if given is None and torch.compiler.is_compiling():
        return packed.shape[0]
    return longest_of(name, given, starts)
