"""Torch's own attention, whoever has taken its place: somebody's name for it, or attention.install() its operator."""

import threading
from collections.abc import Callable
from contextlib import suppress

import torch

from attention.kernels.torch.common.readable import all_readable, readable_mask
from attention.torch_private import torch_sdpa

Call = Callable[..., torch.Tensor]

# What a compiler has in the place of plain tensors while it traces; their sizes may be symbols.
STAND_INS = frozenset({"FakeTensor", "FunctionalTensor"})


def in_a_graph(tensor: torch.Tensor) -> bool:
    """True where a call is traced, not computed. Torch 2.11 tells its own tracer only, and nothing below it."""
    return torch.compiler.is_compiling() or type(tensor).__name__ in STAND_INS


class Within(threading.local):
    """While the override of attention.install() serves a call of this thread: the kernel that stands behind it."""

    own: Call | None = None


within = Within()


def is_narrower(mask: torch.Tensor, query: torch.Tensor) -> bool:
    """Whether torch's kernel for a CPU reads a mask of 32 bits as one of 64: sums are wrong then (torch 2.13)."""
    return query.dtype is torch.float64 and mask.dtype is torch.float32


def scaled_dot_product_attention(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attn_mask: torch.Tensor | None,
    dropout_p: float,
    is_causal: bool,
    scale: float | None,
    enable_gqa: bool,
) -> torch.Tensor:
    """Torch's function with torch's kernels, from inside of an override too."""
    own = torch_sdpa if torch.compiler.is_compiling() else within.own or torch_sdpa
    # Strides of nested tensors are no numbers (torch 2.11: symbols that know no remainder).
    if query.is_cuda and not (query.is_nested or key.is_nested or value.is_nested or in_a_graph(query)):
        with suppress(RuntimeError):  # a wrapper of torch.func has no address
            query, key, value = all_readable(query, key, value)
            attn_mask = attn_mask if attn_mask is None else readable_mask(attn_mask)
    if attn_mask is not None and is_narrower(attn_mask, query):
        attn_mask = attn_mask.double()
    return own(query, key, value, attn_mask, dropout_p, is_causal, scale=scale, enable_gqa=enable_gqa)
