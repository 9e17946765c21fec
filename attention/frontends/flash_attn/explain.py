"""explain() for the two functions with flash-attn's arguments. Arrays will do as well as tensors: no torch here."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from attention.choose.explain import Explanation, explain_call
from attention.frontends.flash_attn import problem as flash_problem
from attention.frontends.flash_attn.arguments import (
    FlashExtras,
    Lengths,
    extras_of,
    ignored_note,
    longest_of,
    options_of,
    refuse_others,
)
from attention.judge.arguments import OPEN, number, one_of
from attention.problem import AttentionProblem

Window = tuple[int | None, int | None] | None
CUT = "the rows that seqused and leftpad leave are computed as packed sequences, {} for each of the caller's"


def explain_flash_attn_func(
    q: Any,
    k: Any,
    v: Any,
    dropout_p: float = 0.0,
    softmax_scale: float | None = None,
    causal: bool = False,
    window_size: Window = OPEN,
    softcap: float | None = 0.0,
    alibi_slopes: Any = None,
    deterministic: bool = False,
    return_attn_probs: bool = False,
    *,
    sinks: Any = None,
    s_aux: Any = None,
    learnable_sink: Any = None,
    seqused_q: Any = None,
    seqused_k: Any = None,
    leftpad_k: Any = None,
    return_lse: bool = False,
    return_softmax_lse: bool = False,
    num_splits: int | None = None,
    pack_gqa: bool | None = None,
    sm_margin: int | None = None,
    strict: bool = False,
    only: str | None = None,
    gpu: str | None = None,
    passes: str = "forward",
    **others: Any,
) -> Explanation:
    """Which kernel serves this call of flash_attn_func and why; `gpu` names a profile, by default this machine's own.

    A note names the hints that the call ignores. Raises ProblemError, UnsupportedError, microbench.errors.UnknownGpu.
    """
    refuse_others("explain_flash_attn_func", others)
    sink = one_of(sinks=sinks, s_aux=s_aux, learnable_sink=learnable_sink)
    extras = extras_of(alibi_slopes, sink, (seqused_q, seqused_k, leftpad_k), others)
    options = options_of(softmax_scale, causal, window_size, softcap, others)
    flash_problem.refuse_dropout(number("dropout_p", dropout_p))
    asked = flash_problem.problem(q, k, v, options, extras)
    hints = {"num_splits": num_splits, "pack_gqa": pack_gqa, "sm_margin": sm_margin, **others}
    return _explained(asked, (q, k, v), extras, hints, gpu, only, passes)


def explain_flash_attn_varlen_func(
    q: Any,
    k: Any,
    v: Any,
    cu_seqlens_q: Any,
    cu_seqlens_k: Any,
    max_seqlen_q: int | None,
    max_seqlen_k: int | None,
    dropout_p: float = 0.0,
    softmax_scale: float | None = None,
    causal: bool = False,
    window_size: Window = OPEN,
    softcap: float | None = 0.0,
    alibi_slopes: Any = None,
    deterministic: bool = False,
    return_attn_probs: bool = False,
    block_table: None = None,
    *,
    sinks: Any = None,
    s_aux: Any = None,
    learnable_sink: Any = None,
    seqused_q: Any = None,
    seqused_k: Any = None,
    leftpad_k: Any = None,
    return_lse: bool = False,
    return_softmax_lse: bool = False,
    num_splits: int | None = None,
    pack_gqa: bool | None = None,
    sm_margin: int | None = None,
    strict: bool = False,
    only: str | None = None,
    gpu: str | None = None,
    passes: str = "forward",
    **others: Any,
) -> Explanation:
    """Which kernel serves this call of flash_attn_varlen_func and why, as explain_flash_attn_func says it."""
    refuse_others("explain_flash_attn_varlen_func", {"block_table": block_table, **others})
    sink = one_of(sinks=sinks, s_aux=s_aux, learnable_sink=learnable_sink)
    extras = extras_of(alibi_slopes, sink, (seqused_q, seqused_k, leftpad_k), others)
    options = options_of(softmax_scale, causal, window_size, softcap, others)
    flash_problem.refuse_dropout(number("dropout_p", dropout_p))
    longest = (
        longest_of("max_seqlen_q", max_seqlen_q, cu_seqlens_q),
        longest_of("max_seqlen_k", max_seqlen_k, cu_seqlens_k),
    )
    lengths = Lengths(cu_seqlens_q, cu_seqlens_k, *longest)
    asked = flash_problem.packed_problem(q, k, v, lengths, options, extras)
    hints = {"num_splits": num_splits, "pack_gqa": pack_gqa, "sm_margin": sm_margin, **others}
    return _explained(asked, (q, k, v), extras, hints, gpu, only, passes)


def _explained(
    asked: AttentionProblem,
    tensors: tuple[Any, ...],
    extras: FlashExtras,
    hints: Mapping[str, Any],
    gpu: str | None,
    only: str | None,
    passes: str,
) -> Explanation:
    explained = explain_call(asked, tensors, gpu=gpu, only=only, passes=passes)
    cut = (CUT.format(extras.parts()),) if extras.parts() > 1 else ()
    return replace(explained, notes=(*explained.notes, *cut, *ignored_note(hints)))
