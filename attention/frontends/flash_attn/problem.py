"""The problem that a call of flash_attn_func or flash_attn_varlen_func poses, read off its arguments without torch.

Sequences without queries or keys count as length 1 here: nothing is computed of them, but the rest is judged.
"""

from typing import Any

from attention.call import Options, asked_of, given_of
from attention.errors import ArgumentError, ProblemError, UnsupportedError
from attention.features import OPERANDS
from attention.frontends.flash_attn.arguments import FlashExtras, Lengths
from attention.judge.shapes import same_device, same_dtype, shapes_of
from attention.problem import DTYPE_BYTES, AttentionProblem

FLOATS = tuple(DTYPE_BYTES)
INTEGERS = ("int32", "int64")


def problem(q: Any, k: Any, v: Any, options: Options, extras: FlashExtras) -> AttentionProblem:
    """Of q (B, Sq, Hq, D), k (B, Skv, Hkv, D), v (B, Skv, Hkv, Dv). Raises ProblemError, UnsupportedError.

    Where not every row is used, it is the problem of the packed sequences that flash_attn.used_rows makes of it.
    """
    shapes = shapes_of(q, k, v)
    _check_shapes(shapes, "(batch, sequence, heads, head_dim)")
    if len({shape[0] for shape in shapes}) > 1:
        raise ProblemError(f"q, k and v have batches of {', '.join(str(shape[0]) for shape in shapes)}; give one size.")
    (batch, seq_q, heads_q, dim), (_, seq_kv, heads_kv, _), (*_, dim_v) = shapes
    _check_extras(q, extras, {"b": batch, "h": heads_q, "q": seq_q, "k": seq_kv})
    packed: dict[str, Any] = {}
    if extras.parts() > 1:
        packed = {"varlen": True, "tokens_q": batch * seq_q, "tokens_kv": batch * seq_kv}
    return AttentionProblem(
        max(1, batch * extras.parts()),
        heads_q,
        heads_kv,
        max(1, seq_q),
        max(1, seq_kv),
        dim,
        dim_v,
        **_features(q, k, v, options, extras),
        **packed,
    )


def packed_problem(q: Any, k: Any, v: Any, lengths: Lengths, options: Options, extras: FlashExtras) -> AttentionProblem:
    """Of packed q (Tq, Hq, D), k (Tkv, Hkv, D), v (Tkv, Hkv, Dv). Raises ProblemError, UnsupportedError."""
    shapes = shapes_of(q, k, v)
    _check_shapes(shapes, "(tokens, heads, head_dim)")
    for name, starts in (("cu_seqlens_q", lengths.cu_seqlens_q), ("cu_seqlens_k", lengths.cu_seqlens_k)):
        _check_starts(name, starts, q)
    for name, longest in (("max_seqlen_q", lengths.max_seqlen_q), ("max_seqlen_k", lengths.max_seqlen_k)):
        if longest < 0:
            raise ProblemError(f"{name} is {longest}; pass the length of the longest sequence.")
    sequences = int(lengths.cu_seqlens_q.shape[0]) - 1
    if int(lengths.cu_seqlens_k.shape[0]) - 1 != sequences:
        raise ProblemError(
            f"cu_seqlens_q says {sequences} sequences and cu_seqlens_k {int(lengths.cu_seqlens_k.shape[0]) - 1}; "
            "give both one entry more than there are sequences."
        )
    (tokens_q, heads_q, dim), (tokens_kv, heads_kv, _), (*_, dim_v) = shapes
    _check_extras(q, extras, {"b": sequences, "h": heads_q, "q": tokens_q, "k": tokens_kv})
    return AttentionProblem(
        max(1, sequences * extras.parts()),
        heads_q,
        heads_kv,
        max(1, lengths.max_seqlen_q),
        max(1, lengths.max_seqlen_k),
        dim,
        dim_v,
        **_features(q, k, v, options, extras),
        varlen=True,
        tokens_q=tokens_q,
        tokens_kv=tokens_kv,
    )


def refuse_dropout(dropout_p: float) -> None:
    """Raise UnsupportedError for a dropout above 0, which no kernel here has."""
    if not 0.0 <= dropout_p <= 1.0:
        raise ProblemError(f"dropout_p is {dropout_p}; give a probability from 0 to 1.")
    if dropout_p > 0:
        raise UnsupportedError(
            f"dropout_p={dropout_p} is not supported: no kernel here has dropout; pass dropout_p=0.0, or call "
            "attention.sdpa, which hands dropout to torch."
        )


def _features(q: Any, k: Any, v: Any, options: Options, extras: FlashExtras) -> dict[str, Any]:
    return {
        "dtype": same_dtype(q, k, v),
        "device": same_device(q, k, v).split(":")[0],
        "scale": options.scale,
        **asked_of(options, given_of(extras.operands)),
    }


def _check_extras(q: Any, extras: FlashExtras, sizes: dict[str, int]) -> None:
    for operand, given in zip(OPERANDS, extras.operands, strict=False):
        name = "alibi_slopes" if operand.name == "alibi" else operand.name
        whole = tuple(sizes[axis] for axis in operand.axes)
        _check_extra(name, given, q, tuple(whole[skipped:] for skipped in range(len(operand.leaves), -1, -1)))
    for name in ("seqused_q", "seqused_k", "leftpad_k"):
        _check_extra(name, getattr(extras, name), q, ((sizes["b"],),), INTEGERS)


def _check_extra(
    name: str, given: Any, q: Any, allowed: tuple[tuple[int, ...], ...], dtypes: tuple[str, ...] = FLOATS
) -> None:
    if given is None:
        return
    shape = tuple(int(size) for size in given.shape)
    if shape not in allowed:
        raise ProblemError(f"{name} has shape {shape}; give it {' or '.join(str(each) for each in allowed)}.")
    if _dtype(given) not in dtypes:
        wanted = "floating point numbers" if dtypes == FLOATS else " or ".join(dtypes)
        raise ArgumentError(f"{name} is {given.dtype}; pass {wanted}.")
    same_device(q, given)


def _dtype(given: Any) -> str:
    return str(given.dtype).removeprefix("torch.")


def _check_starts(name: str, given: Any, q: Any) -> None:
    shape = tuple(int(size) for size in given.shape)
    if len(shape) != 1 or shape[0] < 1:
        raise ProblemError(f"{name} has shape {shape}; give it (sequences + 1,), beginning with 0.")
    if _dtype(given) not in INTEGERS:
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
