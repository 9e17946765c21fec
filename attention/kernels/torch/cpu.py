"""Torch's own CPU kernel: blocked flash attention over the BLAS that torch was built with.

Block sizes as in aten/src/ATen/native/cpu/FlashAttentionKernel.cpp: 512 keys, and 32, 64 or 256 queries.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from attention.call import NO_EXTRAS, Extras
from attention.forwarded import Forwarded, Gradients, Wanted
from attention.kernels.torch.common import limits
from attention.kernels.torch.common.gradients import gradients, lse_of_unseen
from attention.kernels.torch.common.limits import MOST_MASKED, band_in_mask
from attention.kernels.torch.common.masks import additive
from attention.kernels.torch.common.tensors import Pair, dense, laid_out
from attention.problem import AttentionProblem
from attention.tile import Demand, Tile
from attention.variant import MEMORY, Config, Variant
from microbench.machine.arch import Arch

if TYPE_CHECKING:
    from torch import Tensor

KEYS = 512
QUERIES = ((768, 256), (192, 64), (0, 32))
SCORE_PASSES = (
    4  # the product writes a score, the maximum reads it, exp reads and writes it in place, the product reads it
)
SCORE_BYTES = 4


def refuses(problem: AttentionProblem, arch: Arch) -> str | None:
    """The kernel behind `_scaled_dot_product_flash_attention_for_cpu`, which returns lse."""
    if reason := limits.one_head_dim(problem):
        return reason
    if band_in_mask(problem) and problem.mask == "none" and not problem.sinks:
        return "computes all keys, where a band alone hides some"
    return _too_large_a_mask(problem) or limits.needs_positive_scale(problem)


def refuses_backward(problem: AttentionProblem, arch: Arch) -> str | None:
    return limits.one_head_dim(problem) or limits.positive_scale(problem) or _too_large_a_mask(problem)


def _too_large_a_mask(problem: AttentionProblem) -> str | None:
    if band_in_mask(problem) and problem.seq_q * problem.seq_kv > MOST_MASKED:
        return f"writes a band into a mask, of at most {MOST_MASKED} scores a head"
    return None


def tile(problem: AttentionProblem, config: Config) -> Tile:
    """Products at the rate that NumPy's BLAS reached, scores through the cache between them."""
    rows = next(block for least, block in QUERIES if problem.seq_q >= least)
    columns = min(KEYS, problem.seq_kv)
    width = 2 * problem.head_dim
    wide = max(1, problem.element_bytes // 4)
    score_bytes = rows * columns * SCORE_BYTES * wide
    seen = problem.scores / (problem.batch * problem.heads_q * problem.seq_q)
    # What a mask hides is computed all the same.
    hidden = problem.seq_kv / max(seen, 1.0) if band_in_mask(problem) else 1.0
    keys_seen = seen * hidden
    kv_row_bytes = width * problem.element_bytes
    heads = 1 if problem.seq_q > rows else problem.batch * problem.heads_kv  # read in a call before a key comes again
    return Tile(
        rows=rows,
        columns=columns,
        row_step=1,
        column_step=1,
        demands=(
            Demand(
                "products in BLAS", "products", 2 * rows * columns * width * wide * hidden, "matmul_f32_flops_per_s"
            ),
            Demand("exponentials", "softmax", rows * columns * wide * hidden, "exp_f32_per_s"),
            Demand("scores through cache", "scores", SCORE_PASSES * score_bytes * hidden, MEMORY, score_bytes),
        ),
        edge=(
            Demand("K and V", "K and V", keys_seen * kv_row_bytes, MEMORY, keys_seen * kv_row_bytes * heads),
            Demand("Q and out", "edge", rows * kv_row_bytes, "dram_bandwidth_bytes_per_s"),
        ),
    )


def notes(problem: AttentionProblem) -> tuple[str, ...]:
    """Where the prediction stands on a neighbour's rate."""
    said = ["torch's BLAS is predicted at the rate of NumPy's, corrected by timings of torch where there are some"]
    if problem.dtype in ("float16", "bfloat16"):
        said.append(f"{problem.dtype} products are predicted at the float32 rate; this CPU may do better or worse")
    return tuple(said)


def forward(
    query: Tensor, key: Tensor, value: Tensor, problem: AttentionProblem, config: Config, extras: Extras = NO_EXTRAS
) -> Pair:
    """Out (B, Hq, Sq, Dv) and lse (B, Hq, Sq), as attention.kernels.common.layout has them.

    Torch's function checks its strides in a caller that is passed by here: it reads a last dimension that is not
    contiguous as if it were (torch 2.13), so that such a tensor is copied first. It gives a query that its mask hides
    from every key an lse of 0 (torch 2.13), which becomes -inf. A band is written into the mask where there is one, or
    where is_causal cannot say it. A sink takes its weight from the row afterwards: of exp(lse) + exp(sink), exp(lse)
    is left.
    """
    import torch

    q, k, v = dense(query), dense(key), dense(value)
    mask = additive(problem, extras.mask, query)
    call = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu
    causal = problem.causal and not band_in_mask(problem)
    out, lse = call(q, k, v, 0.0, causal, attn_mask=mask, scale=problem.softmax_scale)
    if mask is not None:
        lse = lse.masked_fill((mask == -torch.inf).all(-1), -torch.inf)
    if extras.sinks is not None:
        sinks = extras.sinks[:, None]
        out.mul_((lse - sinks).sigmoid_()[..., None])
        lse = torch.logaddexp(lse, sinks)
    return laid_out(out, query, v), lse.contiguous()


def backward(grad_out: Tensor, grad_lse: Tensor | None, given: Forwarded, wanted: Wanted) -> Gradients:
    """Heads of a group are repeated, and their gradients added."""
    import torch

    problem, group = given.problem, given.query.shape[1] // given.key.shape[1]
    keys = [each if group == 1 else each.repeat_interleave(group, 1) for each in (given.key, given.value)]
    d_out, q, k, v, out = map(dense, (grad_out, given.query, *keys, given.out))
    query, *found = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu_backward(
        *(d_out, q, k, v, out, lse_of_unseen(given.lse), 0.0, problem.causal and not band_in_mask(problem)),
        attn_mask=additive(problem, given.extras.mask, q),
        scale=problem.softmax_scale,
    )
    key, value = (each if group == 1 else each.unflatten(1, (-1, group)).sum(2) for each in found)
    return gradients((query, key, value), grad_out, given, wanted)


FEATURES: frozenset[str] = frozenset(
    {"bool mask", "float mask", "attention sinks", "sliding window", "bottom-right causality"}
)

VARIANTS = (
    Variant(
        path="host/forward/torch_sdpa",
        summary="torch: flash attention on the CPU, over torch's BLAS",
        owner="torch",
        archs=("host",),
        refuses=refuses,
        features=FEATURES,
        tile=tile,
        rank=1,
        notes=notes,
    ),
    Variant(
        path="host/backward/torch_sdpa",
        summary="torch: the backward of flash attention on the CPU, from any forward's out and lse",
        owner="torch",
        archs=("host",),
        refuses=refuses_backward,
        withheld=limits.of_call,
        features=FEATURES,
        rank=1,
    ),
)
