"""flash-attn's functions of one tensor that holds q, k and v, or k and v: views of it go to the other two functions.

`features` are what these take by place behind the tensors and lengths, `options` what they take by name. Raises as they
do.
"""

from collections.abc import Callable
from inspect import Signature, signature
from typing import Any

import torch

from attention.errors import ProblemError
from attention.frontends.flash_attn.functions import Out, flash_attn_func, flash_attn_varlen_func
from attention.frontends.inputs import overridable, require_tensors
from attention.judge.arguments import whole

FEATURES = [
    each
    for each in signature(flash_attn_func).parameters.values()
    if each.kind is each.POSITIONAL_OR_KEYWORD and each.default is not each.empty
]


def _packing(function: Callable[..., Out]) -> Callable[..., Out]:
    """With the features written out in the signature, where help() and adapters look for them."""
    own = [*signature(function).parameters.values()]
    at = [each.name for each in own].index("features")
    setattr(function, "__signature__", Signature([*own[:at], *FEATURES, *own[at + 1 :]]))  # noqa: B010
    return overridable()(function)


@_packing
def flash_attn_qkvpacked_func(qkv: torch.Tensor, *features: Any, num_heads_q: int | None = None, **options: Any) -> Out:
    """flash_attn_func of qkv (B, S, 3, H, D), which is read in place: out (B, S, H, D).

    num_heads_q: as in FlashAttention-3, qkv is (B, S, Hq + 2 Hkv, D), and this many of its heads are those of q.
    """
    if num_heads_q is None:
        q, k, v = _unpacked("qkv", qkv, "(batch, sequence, 3, heads, head_dim)")
    else:
        q, k, v = _split_heads(qkv, whole("num_heads_q", num_heads_q, "a whole number, the heads of q"))
    return flash_attn_func(q, k, v, *features, **options)


@_packing
def flash_attn_kvpacked_func(q: torch.Tensor, kv: torch.Tensor, *features: Any, **options: Any) -> Out:
    """flash_attn_func of q (B, Sq, Hq, D) and kv (B, Skv, 2, Hkv, D), which is read in place: out (B, Sq, Hq, D)."""
    k, v = _unpacked("kv", kv, "(batch, sequence, 2, heads, head_dim)")
    return flash_attn_func(q, k, v, *features, **options)


@_packing
def flash_attn_varlen_qkvpacked_func(
    qkv: torch.Tensor, cu_seqlens: torch.Tensor, max_seqlen: int | None, *features: Any, **options: Any
) -> Out:
    """flash_attn_varlen_func of qkv (T, 3, H, D), with the same lengths for queries and keys: out (T, H, D)."""
    q, k, v = _unpacked("qkv", qkv, "(tokens, 3, heads, head_dim)")
    return flash_attn_varlen_func(q, k, v, cu_seqlens, cu_seqlens, max_seqlen, max_seqlen, *features, **options)


@_packing
def flash_attn_varlen_kvpacked_func(
    q: torch.Tensor,
    kv: torch.Tensor,
    cu_seqlens_q: torch.Tensor,
    cu_seqlens_k: torch.Tensor,
    max_seqlen_q: int | None,
    max_seqlen_k: int | None,
    *features: Any,
    **options: Any,
) -> Out:
    """flash_attn_varlen_func of q (Tq, Hq, D) and kv (Tkv, 2, Hkv, D): out (Tq, Hq, D)."""
    k, v = _unpacked("kv", kv, "(tokens, 2, heads, head_dim)")
    return flash_attn_varlen_func(q, k, v, cu_seqlens_q, cu_seqlens_k, max_seqlen_q, max_seqlen_k, *features, **options)


def _split_heads(qkv: torch.Tensor, heads: int) -> tuple[torch.Tensor, ...]:
    """Views of q, k and v, whose heads lie one after another. Raises ProblemError where they do not add up."""
    require_tensors(("qkv", qkv))
    rest = qkv.shape[2] - heads if qkv.dim() == 4 else -1
    if heads < 1 or rest < 2 or rest % 2:
        raise ProblemError(
            f"qkv has shape {tuple(qkv.shape)} and num_heads_q is {heads}; give it the layout "
            "(batch, sequence, num_heads_q + 2 * key heads, head_dim)."
        )
    return qkv.split((heads, rest // 2, rest // 2), dim=2)  # type: ignore[no-untyped-call, no-any-return]


def _unpacked(name: str, packed: torch.Tensor, layout: str) -> tuple[torch.Tensor, ...]:
    """Its tensors, as views. Raises ProblemError where it is not of the layout; ArgumentError where it is no tensor."""
    require_tensors((name, packed))
    if packed.dim() != layout.count(",") + 1 or packed.shape[-3] != len(name):
        raise ProblemError(f"{name} has shape {tuple(packed.shape)}; give it the layout {layout}.")
    return packed.unbind(-3)
