"""attention.flash_attn_func and flash_attn_varlen_func: flash-attn's signatures and conventions, by the same operator.

Tensors are (B, S, H, D), or packed (T, H, D) with cu_seqlens; causality and windows are aligned bottom-right. Where
flash-attn's functions have what these lack, a call says so: dropout is refused by name.
"""

from functools import lru_cache
from typing import Any

import torch

from attention import operator
from attention.errors import ArgumentError, UnsupportedError
from attention.flash_problem import packed_problem, problem, refuse_dropout
from attention.inputs import autocast, require_tensors
from attention.layout import lse_dtype
from attention.shapes import Described

Out = torch.Tensor | tuple[torch.Tensor, torch.Tensor]


def flash_attn_func(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    dropout_p: float = 0.0,
    softmax_scale: float | None = None,
    causal: bool = False,
    window_size: tuple[int, int] = (-1, -1),
    softcap: float = 0.0,
    alibi_slopes: torch.Tensor | None = None,
    deterministic: bool = False,
    *,
    sinks: torch.Tensor | None = None,
    return_lse: bool = False,
    strict: bool = False,
    only: str | None = None,
) -> Out:
    """Attention of q (B, Sq, Hq, D), k (B, Skv, Hkv, D) and v (B, Skv, Hkv, Dv): out (B, Sq, Hq, Dv).

    causal: the last query sees the last key; query i sees keys up to i + Skv - Sq.
    window_size: how many keys left and right of there are seen as well; -1 is all.
    softcap: scores become softcap * tanh(score / softcap); 0.0 is none.
    alibi_slopes: (Hq,) or (B, Hq); -slope * |i + Skv - Sq - j| is added to the score of query i and key j.
    sinks: (Hq,), one more logit in each query's denominator, which weighs no value.
    return_lse: (out, lse) with lse (B, Hq, Sq), the natural logarithm of the denominator, sinks included.
    deterministic: nothing to choose, the backward always is.
    strict, only: as in attention.sdpa. A query that sees nothing gives 0, and lse -inf (its sink where there is one).
    Raises ProblemError; ArgumentError, a TypeError, for a wrong type; UnsupportedError for dropout_p above 0.
    """
    require_tensors(("q", q), ("k", k), ("v", v))
    q, k, v = autocast(q, k, v)
    left, right = _edges(window_size)
    for name, tensor in (("alibi_slopes", alibi_slopes), ("sinks", sinks)):
        if tensor is not None:
            require_tensors((name, tensor))
    if torch.compiler.is_compiling():
        refuse_dropout(dropout_p)
    else:
        given = (_facts(q), _facts(k), _facts(v), _facts(alibi_slopes), _facts(sinks))
        _judge(*given, dropout_p, softmax_scale, causal, left, right, softcap)
    dtype = lse_dtype(q)
    out, lse = operator.forward(
        *(q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2), None),
        None if alibi_slopes is None else alibi_slopes.to(dtype),
        None if sinks is None else sinks.to(dtype),
        *(None, None, 0, 0, causal, True, left, right, softcap, softmax_scale, only or "", strict),
        deterministic=deterministic,
    )
    out = out.transpose(1, 2)
    return (out, lse) if return_lse else out


def flash_attn_varlen_func(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    cu_seqlens_q: torch.Tensor,
    cu_seqlens_k: torch.Tensor,
    max_seqlen_q: int,
    max_seqlen_k: int,
    dropout_p: float = 0.0,
    softmax_scale: float | None = None,
    causal: bool = False,
    window_size: tuple[int, int] = (-1, -1),
    softcap: float = 0.0,
    alibi_slopes: torch.Tensor | None = None,
    deterministic: bool = False,
    *,
    sinks: torch.Tensor | None = None,
    return_lse: bool = False,
    strict: bool = False,
    only: str | None = None,
) -> Out:
    """Attention of packed sequences: q (Tq, Hq, D), k (Tkv, Hkv, D), v (Tkv, Hkv, Dv) -> out (Tq, Hq, Dv).

    Sequence b has the queries cu_seqlens_q[b] to cu_seqlens_q[b + 1] and the keys cu_seqlens_k[b] to
    cu_seqlens_k[b + 1]; both are int32 (B + 1,) on the device of q, and no sequence is longer than max_seqlen_q or
    max_seqlen_k. On the CPU that is checked; on a GPU it would wait for the device, and is the caller's word.
    Everything else as in flash_attn_func, for each sequence with its own lengths; alibi_slopes (Hq,) or (B, Hq);
    lse is (Hq, Tq). Rows that belong to no sequence are 0 and -inf on the CPU; on a GPU nobody writes them.
    """
    require_tensors(("q", q), ("k", k), ("v", v), ("cu_seqlens_q", cu_seqlens_q), ("cu_seqlens_k", cu_seqlens_k))
    q, k, v = autocast(q, k, v)
    left, right = _edges(window_size)
    for name, tensor in (("alibi_slopes", alibi_slopes), ("sinks", sinks)):
        if tensor is not None:
            require_tensors((name, tensor))
    if torch.compiler.is_compiling():
        refuse_dropout(dropout_p)
    else:
        given = (_facts(q), _facts(k), _facts(v), _facts(alibi_slopes), _facts(sinks))
        lengths = (_facts(cu_seqlens_q), _facts(cu_seqlens_k), max_seqlen_q, max_seqlen_k)
        _judge(*given, dropout_p, softmax_scale, causal, left, right, softcap, *lengths)
    dtype = lse_dtype(q)
    out, lse = operator.forward(
        *(q.transpose(0, 1)[None], k.transpose(0, 1)[None], v.transpose(0, 1)[None], None),
        None if alibi_slopes is None else alibi_slopes.to(dtype),
        None if sinks is None else sinks.to(dtype),
        *(cu_seqlens_q, cu_seqlens_k, max_seqlen_q, max_seqlen_k, causal, True, left, right),
        *(softcap, softmax_scale, only or "", strict),
        deterministic=deterministic,
    )
    out = out[0].transpose(0, 1)
    return (out, lse[0]) if return_lse else out


Facts = tuple[torch.Size, torch.dtype, torch.device]


def _facts(tensor: torch.Tensor | None) -> Facts | None:
    return None if tensor is None else (tensor.shape, tensor.dtype, tensor.device)


@lru_cache(maxsize=4096, typed=True)  # 1 and True are equal, and not the same argument
def _judge(
    q: Facts,
    k: Facts,
    v: Facts,
    alibi_slopes: Facts | None,
    sinks: Facts | None,
    dropout_p: float,
    softmax_scale: float | None,
    causal: bool,
    left: int,
    right: int,
    softcap: float,
    *lengths: Any,
) -> None:
    """Raise what is wrong with a call; what was sound once is not looked at again."""
    if q[2].type not in operator.SERVED_DEVICES:
        raise UnsupportedError(f"No kernel runs on {q[2].type} yet; move q, k and v to the CPU or to a CUDA GPU.")
    query, key, value, *others = (None if each is None else Described(*each) for each in (q, k, v, alibi_slopes, sinks))
    options: tuple[Any, ...] = (dropout_p, softmax_scale, causal, (left, right), softcap, *others)
    if lengths:
        starts_q, starts_k, max_seqlen_q, max_seqlen_k = lengths
        starts = (Described(*starts_q), Described(*starts_k))
        packed_problem(query, key, value, *starts, max_seqlen_q, max_seqlen_k, *options)
    else:
        problem(query, key, value, *options)


def _edges(window_size: Any) -> tuple[int, int]:
    """Raise ArgumentError for what is no pair."""
    try:
        left, right = window_size
    except (TypeError, ValueError):
        raise ArgumentError(
            f"window_size is {window_size!r}; give two whole numbers, keys to the left and right, -1 for all."
        ) from None
    return left, right
