"""Torch's fused backward kernels on our out and lse: which of them serves a problem, and the calls.

Both recompute the weights as exp(scale Q K^T - lse), so that they take any forward's out and lse, sinks included: only
the sum over keys changes with a sink, and lse holds it. cuDNN's takes full and square causal attention, and is torch's
own choice on Hopper and Blackwell; FlashAttention-2's takes bottom-right causality, windows and packed sequences too.
On a CPU torch's own takes masks as well, a band among them.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any, cast

import torch

from attention.call import Extras
from attention.problem import AttentionProblem
from attention.torch_limits import MOST_MASKED, band_in_mask
from attention.torch_masks import additive

Triple = tuple[torch.Tensor, torch.Tensor, torch.Tensor]
HEAD_DIM_MAX = 256
CUDNN_LEAST_VERSION = 91500  # from which on torch prefers it on compute capability 9 and 10 (sdp_utils, torch 2.11)
OF_CUDNN: frozenset[str] = frozenset({"attention sinks"})
OF_CPU = OF_CUDNN | {"bottom-right causality", "sliding window", "bool mask", "float mask"}
OF_FLASH = OF_CUDNN | {"bottom-right causality", "sliding window", "variable lengths"}


@dataclass(frozen=True)
class Forwarded:
    """What the forward was given and gave: tensors (B, H, S, D) or packed (1, H, T, D), lse (B, H, S) or (1, H, T)."""

    query: torch.Tensor
    key: torch.Tensor
    value: torch.Tensor
    out: torch.Tensor
    lse: torch.Tensor
    problem: AttentionProblem
    extras: Extras


Backward = Callable[[torch.Tensor, Forwarded], Triple]


@dataclass(frozen=True)
class Route:
    """The fused backward of a problem, or the reason why there is none, a sentence without a full stop."""

    run: Backward | None
    reason: str = ""


def route(problem: AttentionProblem, capability: tuple[int, int], deterministic: bool = False) -> Route:
    """Which fused backward serves a problem on a GPU of this compute capability.

    FlashAttention-2's adds in one order where torch.use_deterministic_algorithms(True) says so, and has no argument for
    it. To throw that switch for one call would make other threads' operators fail meanwhile.
    """
    reason = _neither(problem, capability)
    if reason:
        return Route(None, reason)
    if deterministic and not adds_in_one_order():
        switch = "torch.use_deterministic_algorithms(True)"
        return Route(None, f"torch's fused backward is deterministic only under {switch}")
    if not deterministic and _cudnn_serves(problem, capability):
        return Route(cudnn)
    lacks = [feature for feature in problem.features if feature not in OF_FLASH]
    if lacks:
        return Route(None, f"torch's fused backward kernels have no {', no '.join(lacks)}")
    moves = problem.alignment == "bottom_right" or problem.seq_q == problem.seq_kv
    if not (problem.edges.open or moves):
        return Route(None, "torch's fused backward kernels align causality bottom-right")
    return Route(flash)


def _neither(problem: AttentionProblem, capability: tuple[int, int]) -> str | None:
    if capability < (8, 0):
        return f"torch's fused backward kernels need compute capability 8.0, not {capability[0]}.{capability[1]}"
    if problem.dtype not in ("float16", "bfloat16"):
        return f"torch's fused backward kernels serve float16 and bfloat16, not {problem.dtype}"
    if problem.head_dim != problem.head_dim_v or problem.head_dim % 8 or problem.head_dim > HEAD_DIM_MAX:
        widths = f"{problem.head_dim} and {problem.head_dim_v}"
        return f"torch's fused backward kernels need one head dim, a multiple of 8 up to {HEAD_DIM_MAX}, not {widths}"
    if capability in ((8, 6), (8, 9), (12, 0)) and problem.head_dim > 192:
        return f"torch's fused backward kernels serve head dims up to 192 here, not {problem.head_dim}"
    if problem.softmax_scale <= 0:
        return f"torch's fused backward kernels need a positive softmax scale, not {problem.softmax_scale:g}"
    return None


def adds_in_one_order() -> bool:
    """Whether torch is told to be deterministic, and to fail where it cannot be."""
    return torch.are_deterministic_algorithms_enabled() and not torch.is_deterministic_algorithms_warn_only_enabled()


@cache
def _torch_prefers_cudnn() -> bool:
    backends: Any = torch.backends
    return (backends.cudnn.version() or 0) > CUDNN_LEAST_VERSION


def _cudnn_serves(problem: AttentionProblem, capability: tuple[int, int]) -> bool:
    """Whether torch itself would take cuDNN, less what is known to give NaN: one query, lengths of 64 mod 128.

    pytorch#196678, cudnn-frontend#160 and #1072.
    """
    lengths, switches = (problem.seq_q, problem.seq_kv), cast(Any, torch.backends.cuda)
    return (
        capability[0] in (9, 10)
        and _torch_prefers_cudnn()
        and switches.cudnn_sdp_enabled()
        and OF_CUDNN.issuperset(problem.features)
        and (problem.edges.open or problem.seq_q == problem.seq_kv)
        and min(lengths) > 1
        and all(length % 128 != 64 for length in lengths)
    )


def cudnn(grad_out: torch.Tensor, given: Forwarded) -> Triple:
    problem, zero = given.problem, _zero(given.query.device, torch.int64)
    grad_out = grad_out if grad_out.stride() == given.out.stride() else torch.empty_like(given.out).copy_(grad_out)
    found: Triple = torch.ops.aten._scaled_dot_product_cudnn_attention_backward(
        *(grad_out, given.query, given.key, given.value, given.out, given.lse.unsqueeze(-1), zero, zero),
        *(None, None, None, problem.seq_q, problem.seq_kv, 0.0, problem.causal),
        scale=problem.softmax_scale,
    )
    return found


def flash(grad_out: torch.Tensor, given: Forwarded) -> Triple:
    """The same, for every mask that is a band aligned bottom-right."""
    problem, extras = given.problem, given.extras
    tensors = [each.transpose(1, 2) for each in (grad_out, given.query, given.key, given.value, given.out)]
    lse = given.lse
    if problem.varlen:
        tensors, lse = [each[0] for each in tensors], lse[0]
    # A row that saw nothing: its weights are exp(-inf - lse), which is 0 for +inf and NaN for -inf.
    lse = lse.masked_fill(lse == -torch.inf, torch.inf)
    d_out, q, k, v, out = (each if each.stride(-1) == 1 else each.contiguous() for each in tensors)
    left, right = problem.window
    seed = _zero(q.device, torch.uint64, 2)
    found = torch.ops.aten._flash_attention_backward(
        *(d_out, q, k, v, out, lse, extras.cu_seqlens_q, extras.cu_seqlens_k),
        *(problem.seq_q, problem.seq_kv, 0.0, problem.causal, seed, _zero(q.device, torch.uint64)),
        scale=problem.softmax_scale,
        window_size_left=left,
        window_size_right=0 if problem.causal else right,
    )
    if problem.varlen:
        found = [
            _of_no_sequence_zero(each, starts)
            for each, starts in zip(found, (extras.cu_seqlens_q, extras.cu_seqlens_k, extras.cu_seqlens_k), strict=True)
        ]
    query, key, value = (each.transpose(1, 2) for each in found)
    return query, key, value


def route_on_cpu(problem: AttentionProblem) -> Route:
    """Torch's fused backward on a CPU: with masks, bands and sinks, of one head dim."""
    lacks = [feature for feature in problem.features if feature not in OF_CPU]
    if lacks:
        return Route(None, f"torch's fused backward on a CPU has no {', no '.join(lacks)}")
    if problem.head_dim != problem.head_dim_v:
        return Route(None, "torch's fused backward on a CPU needs one head dim")
    if problem.softmax_scale <= 0:
        return Route(None, "torch's fused backward needs a positive softmax scale")
    if band_in_mask(problem) and problem.seq_q * problem.seq_kv > MOST_MASKED:
        return Route(None, f"torch's fused backward on a CPU writes a band into a mask of at most {MOST_MASKED} scores")
    return Route(on_cpu)


def on_cpu(grad_out: torch.Tensor, given: Forwarded) -> Triple:
    """The gradients of query, key and value; heads of a group are repeated, and their gradients added."""
    problem, group = given.problem, given.query.shape[1] // given.key.shape[1]
    keys = [each if group == 1 else each.repeat_interleave(group, 1) for each in (given.key, given.value)]
    tensors = (grad_out, given.query, *keys, given.out)
    d_out, q, k, v, out = (each if each.stride(-1) == 1 else each.contiguous() for each in tensors)
    # A row that saw nothing: its weights are exp(-inf - lse), which is 0 for +inf and NaN for -inf.
    lse = given.lse.masked_fill(given.lse == -torch.inf, torch.inf)
    query, *found = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu_backward(
        *(d_out, q, k, v, out, lse, 0.0, problem.causal and not band_in_mask(problem)),
        attn_mask=additive(problem, given.extras.mask, q),
        scale=problem.softmax_scale,
    )
    key, value = (each if group == 1 else each.unflatten(1, (-1, group)).sum(2) for each in found)
    return query, key, value


def _of_no_sequence_zero(gradient: torch.Tensor, starts: torch.Tensor | None) -> torch.Tensor:
    """(1, T, H, D): rows of no sequence are written by nobody, and a projection's gradient sums over them."""
    assert starts is not None
    row = torch.arange(gradient.shape[0], device=gradient.device)
    return gradient.masked_fill_(((row < starts[0]) | (row >= starts[-1]))[:, None, None], 0.0)[None]


@cache
def _kept_zero(device: torch.device, dtype: torch.dtype, size: int) -> torch.Tensor:
    return torch.zeros(size or (), dtype=dtype, device=device)


def _zero(device: torch.device, dtype: torch.dtype, size: int = 0) -> torch.Tensor:
    """The state of a generator that no dropout reads. One of a graph's own pool would not outlive the graph."""
    if torch.cuda.is_current_stream_capturing():
        return torch.empty(size or (), dtype=dtype, device=device)
    return _kept_zero(device, dtype, size)
