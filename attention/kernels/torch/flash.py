"""FlashAttention-2 of torch, mma.sync and softmax that waits for the products of its own block (flash_tile)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from attention.call import NO_EXTRAS, Extras
from attention.forwarded import Forwarded, Gradients, Wanted
from attention.kernels.torch.common import limits
from attention.kernels.torch.common.flash_tile import residents, tile
from attention.kernels.torch.common.gradients import gradients, lse_of_unseen
from attention.kernels.torch.common.readable import all_readable, padded, readable
from attention.kernels.torch.common.tensors import Pair, by_squares, laid_out, no_dropout
from attention.problem import AttentionProblem
from attention.variant import Config, Variant
from microbench.machine.arch import CUDA, Arch

if TYPE_CHECKING:
    from torch import Tensor

HEAD_DIM_MAX_BACKWARD = {"sm86": 192, "sm89": 192, "sm120a": 192}


def refuses(problem: AttentionProblem, arch: Arch) -> str | None:
    """The limits in torch's sdp_utils."""
    if reason := limits.half_precision(problem):
        return reason
    if problem.mask != "none":
        return f"takes no {problem.mask} mask"
    if reason := limits.one_head_dim(problem):
        return reason
    if problem.head_dim > limits.HEAD_DIM_MAX:
        return f"serves head dims up to {limits.HEAD_DIM_MAX}, not {problem.head_dim}"
    if problem.window != (-1, -1) and not _aligned(problem):
        return "aligns windows bottom-right"
    return limits.needs_positive_scale(problem)


def refuses_backward(problem: AttentionProblem, arch: Arch) -> str | None:
    if reason := limits.of_backward(problem):
        return reason
    most = HEAD_DIM_MAX_BACKWARD.get(arch.name, limits.HEAD_DIM_MAX)
    if problem.head_dim > most:
        return f"serves head dims up to {most} on {arch.name}, not {problem.head_dim}"
    return None if problem.edges.open or _aligned(problem) else "aligns causality bottom-right"


def withheld(wanted: Wanted) -> str | None:
    """Its operator has no argument for one order; torch's switch, thrown here, would fail other threads' operators."""
    if reason := limits.of_call(wanted):
        return reason
    if wanted.deterministic and not limits.adds_in_one_order():
        return "is deterministic only under torch.use_deterministic_algorithms(True)"
    return None


def _aligned(problem: AttentionProblem) -> bool:
    return problem.alignment == "bottom_right" or problem.seq_q == problem.seq_kv


def forward(
    query: Tensor, key: Tensor, value: Tensor, problem: AttentionProblem, config: Config, extras: Extras = NO_EXTRAS
) -> Pair:
    """Out (B, Hq, Sq, D) and lse (B, Hq, Sq), as attention.kernels.common.layout has them."""
    import torch

    bottom_right = problem.alignment == "bottom_right"
    if problem.varlen or problem.window != (-1, -1) or (bottom_right and not is_its_own(problem)):
        return _bottom_right(query, key, value, problem, extras)

    def call(q: Tensor, k: Tensor, v: Tensor, causal: bool, scale: float) -> Pair:
        out, lse, *_ = torch.ops.aten._scaled_dot_product_flash_attention(q, k, v, 0.0, causal, False, scale=scale)
        return out, lse

    if not bottom_right:
        return by_squares(call, query, key, value, problem)
    q, k, v = map(padded, (query, key, value))
    out, lse = call(q, k, v, problem.causal, problem.softmax_scale)
    return laid_out(out[..., : value.shape[-1]], query, value), lse


def is_its_own(problem: AttentionProblem) -> bool:
    """Whether the operator that torch's function calls aligns causality as a problem does, and has an lse of each row.

    It does so from the bottom right, though the function above it takes no causality of unlike lengths.
    """
    return problem.alignment == "bottom_right" and problem.seq_q <= problem.seq_kv and problem.window == (-1, -1)


def alone(query: Tensor, key: Tensor, value: Tensor, causal: bool, scale: float | None) -> Tensor:
    """Out (B, Hq, Sq, D) without lse, past the choice that torch's function would make."""
    import torch

    tensors = all_readable(query, key, value)
    out: Tensor = torch.ops.aten._scaled_dot_product_flash_attention(*tensors, 0.0, causal, False, scale=scale)[0]
    return out


def _bottom_right(query: Tensor, key: Tensor, value: Tensor, problem: AttentionProblem, extras: Extras) -> Pair:
    """The operator below torch's function: (B, S, H, D) or packed (T, H, D), aligned bottom-right, with windows."""
    import torch

    q, k, v = (padded(tensor).transpose(1, 2) for tensor in (query, key, value))
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
    out, lse = laid_out(found.transpose(1, 2)[..., : value.shape[-1]], query, value), found_lse
    if problem.varlen or problem.seq_q > problem.seq_kv or left >= 0:  # its lse of a row that sees nothing is +inf
        lse = lse.masked_fill(lse == torch.inf, -torch.inf)
    return out, lse


def backward(grad_out: Tensor, grad_lse: Tensor | None, given: Forwarded, wanted: Wanted) -> Gradients:
    import torch

    problem, extras = given.problem, given.extras
    tensors = [each.transpose(1, 2) for each in (grad_out, given.query, given.key, given.value, given.out)]
    lse = lse_of_unseen(given.lse)
    if problem.varlen:
        tensors, lse = [each[0] for each in tensors], lse[0]
    d_out, q, k, v, out = map(readable, tensors)
    left, right = problem.window
    found = torch.ops.aten._flash_attention_backward(
        *(d_out, q, k, v, out, lse, extras.cu_seqlens_q, extras.cu_seqlens_k),
        *(problem.seq_q, problem.seq_kv, 0.0, problem.causal),
        *(no_dropout(q.device, torch.uint64, 2), no_dropout(q.device, torch.uint64)),
        scale=problem.softmax_scale,
        window_size_left=left,
        window_size_right=0 if problem.causal else right,
    )
    if problem.varlen:
        starts = (extras.cu_seqlens_q, extras.cu_seqlens_k, extras.cu_seqlens_k)
        found = [_of_no_sequence_zero(each, first) for each, first in zip(found, starts, strict=True)]
    query, key, value = (each.transpose(1, 2) for each in found)
    return gradients((query, key, value), grad_out, given, wanted)


def _of_no_sequence_zero(gradient: Tensor, starts: Tensor | None) -> Tensor:
    """(1, T, H, D): rows of no sequence are written by nobody, and a projection's gradient sums over them."""
    import torch

    assert starts is not None
    row = torch.arange(gradient.shape[0], device=gradient.device)
    return gradient.masked_fill_(((row < starts[0]) | (row >= starts[-1]))[:, None, None], 0.0)[None]


FEATURES: frozenset[str] = frozenset({"bottom-right causality", "sliding window", "variable lengths"})
SINCE_AMPERE = CUDA[CUDA.index("sm80") :]

VARIANTS = (
    Variant(
        path="sm80/forward/torch_flash",
        summary="torch: FlashAttention-2 on mma.sync",
        owner="torch",
        archs=SINCE_AMPERE,
        refuses=refuses,
        features=FEATURES,
        tile=tile,
        residents=residents,
        rank=1,
        notes=limits.whose_choice,
    ),
    Variant(
        path="sm80/backward/torch_flash",
        summary="torch: the backward of FlashAttention-2 on mma.sync, from any forward's out and lse",
        owner="torch",
        archs=SINCE_AMPERE,
        refuses=refuses_backward,
        withheld=withheld,
        features=FEATURES | {"attention sinks"},
        rank=1,
    ),
)
