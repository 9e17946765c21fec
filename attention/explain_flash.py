"""explain() for the two functions with flash-attn's arguments. Arrays will do as well as tensors: no torch here."""

from typing import Any

from attention import flash_problem
from attention.explain import Explanation, explain_call


def explain_flash_attn_func(
    q: Any,
    k: Any,
    v: Any,
    dropout_p: float = 0.0,
    softmax_scale: float | None = None,
    causal: bool = False,
    window_size: tuple[int, int] = (-1, -1),
    softcap: float = 0.0,
    alibi_slopes: Any = None,
    deterministic: bool = False,
    *,
    sinks: Any = None,
    gpu: str | None = None,
    only: str | None = None,
) -> Explanation:
    """Which kernel serves this call of flash_attn_func and why; `gpu` names a profile, by default this machine's own.

    Raises ProblemError, UnsupportedError, microbench.errors.UnknownGpu.
    """
    options = (dropout_p, softmax_scale, causal, window_size, softcap, alibi_slopes, sinks)
    return explain_call(flash_problem.problem(q, k, v, *options), (q, k, v), gpu=gpu, only=only)


def explain_flash_attn_varlen_func(
    q: Any,
    k: Any,
    v: Any,
    cu_seqlens_q: Any,
    cu_seqlens_k: Any,
    max_seqlen_q: int,
    max_seqlen_k: int,
    dropout_p: float = 0.0,
    softmax_scale: float | None = None,
    causal: bool = False,
    window_size: tuple[int, int] = (-1, -1),
    softcap: float = 0.0,
    alibi_slopes: Any = None,
    deterministic: bool = False,
    *,
    sinks: Any = None,
    gpu: str | None = None,
    only: str | None = None,
) -> Explanation:
    """Which kernel serves this call of flash_attn_varlen_func and why, as explain_flash_attn_func says it."""
    lengths: tuple[Any, ...] = (cu_seqlens_q, cu_seqlens_k, max_seqlen_q, max_seqlen_k)
    options: tuple[Any, ...] = (dropout_p, softmax_scale, causal, window_size, softcap, alibi_slopes, sinks)
    return explain_call(flash_problem.packed_problem(q, k, v, *lengths, *options), (q, k, v), gpu=gpu, only=only)
