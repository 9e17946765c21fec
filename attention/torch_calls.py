"""Torch's fused kernels for CUDA in the form that also returns lse, which torch's public function keeps to itself.

Their checks lie in torch's sdp_utils, which is passed by here, so that what they leave to it is done here: head dims
padded to 16 bytes, masks as aligned floats, and causality only of as many queries as keys, where top-left and
bottom-right are the same.
"""

from collections.abc import Callable

import torch

from attention.call import NO_EXTRAS, Extras
from attention.layout import empty_lse, empty_out
from attention.problem import AttentionProblem
from attention.variant import Config

Pair = tuple[torch.Tensor, torch.Tensor]
Call = Callable[[torch.Tensor, torch.Tensor, torch.Tensor, bool, float], Pair]
BIAS_MULTIPLE = 16  # elements of a row of an additive mask


def flash(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    problem: AttentionProblem,
    config: Config,
    extras: Extras = NO_EXTRAS,
) -> Pair:
    """FlashAttention-2: out (B, Hq, Sq, D) and lse (B, Hq, Sq), as attention.layout has them."""
    if problem.varlen or problem.alignment == "bottom_right" or problem.window != (-1, -1):
        return _flash_bottom_right(query, key, value, problem, extras)

    def call(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, causal: bool, scale: float) -> Pair:
        out, lse, *_ = torch.ops.aten._scaled_dot_product_flash_attention(q, k, v, 0.0, causal, False, scale=scale)
        return out, lse

    return _by_squares(call, query, key, value, problem)


def flash_alone(
    query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, causal: bool, scale: float | None
) -> torch.Tensor:
    """Out (B, Hq, Sq, D) of FlashAttention-2 without lse, past the choice that torch's function would make."""
    out: torch.Tensor = torch.ops.aten._scaled_dot_product_flash_attention(
        query, key, value, 0.0, causal, False, scale=scale
    )[0]
    return out


def _flash_bottom_right(
    query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, problem: AttentionProblem, extras: Extras
) -> Pair:
    """The operator below torch's function: (B, S, H, D) or packed (T, H, D), aligned bottom-right, with windows."""
    q, k, v = (_padded(tensor).transpose(1, 2) for tensor in (query, key, value))
    if problem.varlen:
        q, k, v = q[0], k[0], v[0]
    left, right = problem.window
    found, found_lse, *_ = torch.ops.aten._flash_attention_forward(
        *(q, k, v, extras.cu_seqlens_q, extras.cu_seqlens_k, problem.seq_q, problem.seq_kv, 0.0, problem.causal, False),
        scale=problem.softmax_scale,
        window_size_left=left,
        window_size_right=0 if problem.causal else right,
    )
    if problem.varlen:
        found, found_lse = found[None], found_lse[None]
    out, lse = _laid_out(found.transpose(1, 2)[..., : value.shape[-1]], query, value), found_lse
    if problem.varlen or problem.seq_q > problem.seq_kv or left >= 0:  # its lse of a row that sees nothing is +inf
        lse = lse.masked_fill(lse == torch.inf, -torch.inf)
    return out, lse


def cudnn(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    problem: AttentionProblem,
    config: Config,
    extras: Extras = NO_EXTRAS,
) -> Pair:
    """cuDNN: out (B, Hq, Sq, Dv) and lse (B, Hq, Sq), as attention.layout has them."""

    def call(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, causal: bool, scale: float) -> Pair:
        kernel = torch.ops.aten._scaled_dot_product_cudnn_attention
        out, lse, *_ = kernel(q, k, v, None, True, 0.0, causal, False, scale=scale)
        return out, lse.reshape(out.shape[:-1])  # some releases return (B, Hq, Sq, 1)

    return _by_squares(call, query, key, value, problem)


def efficient(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    problem: AttentionProblem,
    config: Config,
    extras: Extras = NO_EXTRAS,
) -> Pair:
    """Memory-efficient attention: out (B, Hq, Sq, Dv) and lse (B, Hq, Sq), as attention.layout has them."""
    kernel = torch.ops.aten._scaled_dot_product_efficient_attention
    mask = extras.mask
    q, k, v = (_padded(_for_each_head(tensor, query)) for tensor in (query, key, value))
    bias = None if mask is None else _bias(mask, query.dtype)
    found, long_lse, *_ = kernel(q, k, v, bias, True, 0.0, problem.causal, scale=problem.softmax_scale)
    out, lse = empty_out(query, value.shape[-1]), empty_lse(query)
    out.copy_(found[..., : value.shape[-1]])
    lse.copy_(long_lse[..., : query.shape[2]])  # its rows are padded to 32 queries
    if mask is not None:
        blind = ~mask.any(-1) if mask.dtype == torch.bool else (mask == -torch.inf).all(-1)
        out.masked_fill_(blind[..., None], 0.0)
        lse.masked_fill_(blind, -torch.inf)
    return out, lse


def _by_squares(
    call: Call, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, problem: AttentionProblem
) -> Pair:
    """Top-left causality as a square of the shorter length, and the queries after it, which see all keys."""
    scale = problem.softmax_scale
    q, k, v = (_padded(tensor) for tensor in (query, key, value))
    side = min(problem.seq_q, problem.seq_kv) if problem.causal else problem.seq_q
    keys = side if problem.causal else problem.seq_kv
    found, found_lse = call(q[:, :, :side], k[:, :, :keys], v[:, :, :keys], problem.causal, scale)
    if side == problem.seq_q:
        return _laid_out(found[..., : value.shape[-1]], query, value), found_lse
    out, lse = empty_out(query, value.shape[-1]), empty_lse(query)
    out[:, :, :side], lse[:, :, :side] = found[..., : value.shape[-1]], found_lse
    found, found_lse = call(q[:, :, side:], k, v, False, scale)
    out[:, :, side:], lse[:, :, side:] = found[..., : value.shape[-1]], found_lse
    return out, lse


def _laid_out(found: torch.Tensor, query: torch.Tensor, value: torch.Tensor) -> torch.Tensor:
    """The result in attention.layout's strides, as a compiled graph was promised; copied only where they differ."""
    out = empty_out(query, value.shape[-1])
    return found if found.stride() == out.stride() else out.copy_(found)


def _padded(tensor: torch.Tensor) -> torch.Tensor:
    """With a contiguous last dimension of whole 16 bytes."""
    short = -tensor.shape[-1] % (16 // tensor.element_size())
    tensor = torch.nn.functional.pad(tensor, (0, short)) if short else tensor
    return tensor if tensor.stride(-1) == 1 else tensor.contiguous()


def _for_each_head(tensor: torch.Tensor, query: torch.Tensor) -> torch.Tensor:
    """Key heads repeated for the query heads of their group."""
    group = query.shape[1] // tensor.shape[1]
    return tensor if group == 1 else tensor.repeat_interleave(group, dim=1)


def _bias(mask: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    *leading, keys = mask.shape
    bias = torch.zeros(*leading, keys + -keys % BIAS_MULTIPLE, dtype=dtype, device=mask.device)[..., :keys]
    return bias.masked_fill_(~mask, -torch.inf) if mask.dtype == torch.bool else bias.copy_(mask)
