"""The problem that a call of flash_attn_func or flash_attn_varlen_func poses, read off its arguments without torch.

Sequences without queries or keys count as length 1 here: nothing is computed of them, but the rest is judged.
"""

from typing import Any

from attention.errors import ArgumentError, ProblemError, UnsupportedError, kind_of
from attention.problem import AttentionProblem
from attention.shapes import same_device, same_dtype, shapes_of


def problem(
    q: Any,
    k: Any,
    v: Any,
    dropout_p: float = 0.0,
    softmax_scale: float | None = None,
    causal: bool = False,
    window_size: tuple[int, int] = (-1, -1),
    softcap: float = 0.0,
    alibi_slopes: Any = None,
    sinks: Any = None,
) -> AttentionProblem:
    """Of q (B, Sq, Hq, D), k (B, Skv, Hkv, D), v (B, Skv, Hkv, Dv). Raises ProblemError, UnsupportedError."""
    refuse_dropout(dropout_p)
    shapes = shapes_of(q, k, v)
    _check_shapes(shapes, "(batch, sequence, heads, head_dim)")
    if len({shape[0] for shape in shapes}) > 1:
        raise ProblemError(f"q, k and v have batches of {', '.join(str(shape[0]) for shape in shapes)}; give one size.")
    (batch, seq_q, heads_q, dim), (_, seq_kv, heads_kv, _), (*_, dim_v) = shapes
    return AttentionProblem(
        max(1, batch),
        heads_q,
        heads_kv,
        max(1, seq_q),
        max(1, seq_kv),
        dim,
        dim_v,
        **_features(q, k, v, softmax_scale, causal, window_size, softcap),
        **_extras(q, alibi_slopes, sinks, batch, heads_q),
    )


def packed_problem(
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
    sinks: Any = None,
) -> AttentionProblem:
    """Of packed q (Tq, Hq, D), k (Tkv, Hkv, D), v (Tkv, Hkv, Dv). Raises ProblemError, UnsupportedError."""
    refuse_dropout(dropout_p)
    shapes = shapes_of(q, k, v)
    _check_shapes(shapes, "(tokens, heads, head_dim)")
    for name, lengths in (("cu_seqlens_q", cu_seqlens_q), ("cu_seqlens_k", cu_seqlens_k)):
        _check_starts(name, lengths, q)
    for name, longest in (("max_seqlen_q", max_seqlen_q), ("max_seqlen_k", max_seqlen_k)):
        if isinstance(longest, bool) or not isinstance(longest, int):
            raise ArgumentError(f"{name} is {kind_of(longest)}; pass a whole number, the longest sequence.")
        if longest < 0:
            raise ProblemError(f"{name} is {longest}; pass the length of the longest sequence.")
    sequences = int(cu_seqlens_q.shape[0]) - 1
    if int(cu_seqlens_k.shape[0]) - 1 != sequences:
        raise ProblemError(
            f"cu_seqlens_q says {sequences} sequences and cu_seqlens_k {int(cu_seqlens_k.shape[0]) - 1}; "
            "give both one entry more than there are sequences."
        )
    (tokens_q, heads_q, dim), (tokens_kv, heads_kv, _), (*_, dim_v) = shapes
    return AttentionProblem(
        max(1, sequences),
        heads_q,
        heads_kv,
        max(1, max_seqlen_q),
        max(1, max_seqlen_k),
        dim,
        dim_v,
        **_features(q, k, v, softmax_scale, causal, window_size, softcap),
        **_extras(q, alibi_slopes, sinks, sequences, heads_q),
        varlen=True,
        tokens_q=tokens_q,
        tokens_kv=tokens_kv,
    )


def refuse_dropout(dropout_p: Any) -> None:
    """Raise UnsupportedError for a dropout above 0, which no kernel here has."""
    if isinstance(dropout_p, bool) or not isinstance(dropout_p, (int, float)):
        raise ArgumentError(f"dropout_p is {kind_of(dropout_p)}; pass a number.")
    if not 0.0 <= dropout_p <= 1.0:
        raise ProblemError(f"dropout_p is {dropout_p}; give a probability from 0 to 1.")
    if dropout_p > 0:
        raise UnsupportedError(
            f"dropout_p={dropout_p} is not supported: no kernel here has dropout; pass dropout_p=0.0, or call "
            "attention.sdpa, which hands dropout to torch."
        )


def _features(
    q: Any, k: Any, v: Any, scale: float | None, causal: bool, window: tuple[int, int], softcap: float
) -> dict[str, Any]:
    if not isinstance(causal, bool):
        raise ArgumentError(f"causal is {kind_of(causal)}; pass True or False.")
    return {
        "dtype": same_dtype(q, k, v),
        "device": same_device(q, k, v).split(":")[0],
        "scale": scale,
        "causal": causal,
        "alignment": "bottom_right",
        "window": window,
        "softcap": softcap,
    }


def _extras(q: Any, alibi_slopes: Any, sinks: Any, batch: int, heads: int) -> dict[str, Any]:
    _check_extra("alibi_slopes", alibi_slopes, q, ((heads,), (batch, heads)))
    _check_extra("sinks", sinks, q, ((heads,),))
    return {"alibi": alibi_slopes is not None, "sinks": sinks is not None}


def _check_extra(name: str, given: Any, q: Any, allowed: tuple[tuple[int, ...], ...]) -> None:
    if given is None:
        return
    shape = tuple(int(size) for size in given.shape)
    if shape not in allowed:
        raise ProblemError(f"{name} has shape {shape}; give it {' or '.join(str(each) for each in allowed)}.")
    if "float" not in str(given.dtype):
        raise ArgumentError(f"{name} is {given.dtype}; pass floating point numbers.")
    same_device(q, given)


def _check_starts(name: str, given: Any, q: Any) -> None:
    shape = tuple(int(size) for size in given.shape)
    if len(shape) != 1 or shape[0] < 1:
        raise ProblemError(f"{name} has shape {shape}; give it (sequences + 1,), beginning with 0.")
    if str(given.dtype).removeprefix("torch.") != "int32":
        raise ArgumentError(f"{name} is {given.dtype}; pass int32, such as {name}.to(torch.int32).")
    same_device(q, given)


def _check_shapes(shapes: list[tuple[int, ...]], layout: str) -> None:
    for name, shape in zip("qkv", shapes, strict=True):
        if len(shape) != layout.count(",") + 1:
            raise ProblemError(f"{name} has shape {shape}; give it the layout {layout}.")
    q, k, v = shapes
    if q[-1] != k[-1]:
        raise ProblemError(f"q has head_dim {q[-1]} and k {k[-1]}; they must be equal.")
    if k[:-1] != v[:-1]:
        raise ProblemError(f"k {k} and v {v} must have the same heads and sequence length.")
    if v[-1] < 1:
        raise ProblemError("v has head_dim 0; every size of an attention problem is at least 1.")
