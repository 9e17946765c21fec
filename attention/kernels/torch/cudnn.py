"""cuDNN's attention through torch: closed, but for an SM90 kernel whose source cudnn-frontend publishes.

On Hopper its tile and pipeline are taken to be as there: wgmma, two warpgroups that take turns at products and softmax,
128 queries by 128 keys, K and V by TMA, P in registers. The model takes it as our own kernel of two warpgroups: 0.80 to
0.97 of the time that it took on an H200. One query shares a tile with those of its group, and its keys are split over
blocks; from two on neither happens (timings on an H200: 16 queries take 4 times as long as one), and what is split is
hidden as far as it can be. On Blackwell it runs on tcgen05, which no probe of ours has measured yet.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Any, cast

from attention.call import NO_EXTRAS, Extras
from attention.forwarded import Forwarded, Gradients, Wanted
from attention.kernels.common.family import readers
from attention.kernels.common.layout import READ_BYTES
from attention.kernels.torch.common import limits
from attention.kernels.torch.common.gradients import gradients
from attention.kernels.torch.common.readable import readable
from attention.kernels.torch.common.tensors import Pair, by_squares, no_dropout
from attention.problem import AttentionProblem
from attention.tile import Demand, Tile, WarpgroupTile
from attention.variant import Config, Variant
from microbench.machine.arch import Arch

if TYPE_CHECKING:
    from torch import Tensor

ROWS, COLUMNS = 128, 128
WARPGROUPS = 2
PLAN_SECONDS = 0.033  # for each shape, of the host (data/attention/h200-sxm-141gb-new-lengths.json)
LEAST_VERSION_BACKWARD = 91500  # from which on torch prefers its backward (sdp_utils, torch 2.11)


def refuses(problem: AttentionProblem, arch: Arch) -> str | None:
    """The limits of cuDNN's forward and of what torch passes on to it."""
    if reason := limits.half_precision(problem):
        return reason
    widest = max(problem.head_dim, problem.head_dim_v)
    if widest > limits.HEAD_DIM_MAX or problem.head_dim % 8 or problem.head_dim_v % 8:
        return f"serves head dims that are multiples of 8 up to {limits.HEAD_DIM_MAX}, not {widest}"
    return limits.needs_positive_scale(problem)


def refuses_backward(problem: AttentionProblem, arch: Arch) -> str | None:
    """What torch itself would not give it, and what is known to give NaN: pytorch#196678, cudnn-frontend#160, #1072."""
    if reason := limits.of_backward(problem):
        return reason
    if not problem.edges.open and problem.seq_q != problem.seq_kv:
        return "needs as many queries as keys where it is causal"
    lengths = (problem.seq_q, problem.seq_kv)
    if min(lengths) == 1 or any(length % 128 == 64 for length in lengths):
        return "may give NaN for one query or key, and for lengths of 64 mod 128"
    return None


def withheld(wanted: Wanted) -> str | None:
    import torch

    if reason := limits.of_call(wanted):
        return reason
    if wanted.deterministic or limits.adds_in_one_order():
        return "adds in no fixed order"
    if not _is_preferred():
        return f"is not what torch prefers before version {LEAST_VERSION_BACKWARD} of cuDNN"
    allowed = cast(Any, torch.backends.cuda).cudnn_sdp_enabled()
    return None if allowed else "is switched off by torch.backends.cuda.enable_cudnn_sdp"


@cache
def _is_preferred() -> bool:
    import torch

    return (cast(Any, torch.backends).cudnn.version() or 0) > LEAST_VERSION_BACKWARD


def padded_width(head_dim: int) -> int:
    """Multiples of 64: on an H100 head dim 96 takes it as long as 128, and 192 three quarters of 256."""
    return -(-head_dim // 64) * 64


def tile(problem: AttentionProblem, config: Config) -> Tile:
    """Both warpgroups read K and V from shared memory, and Q as well for the first product."""
    size = problem.element_bytes
    width = padded_width(problem.head_dim) + padded_width(problem.head_dim_v)
    kv_bytes = COLUMNS * width * size
    one = problem.seq_q == 1 and not problem.varlen
    heads = problem.heads_q // problem.heads_kv if one else 1
    dram_bytes = kv_bytes * heads / readers(problem, ROWS)
    operand_bytes = WARPGROUPS * kv_bytes + ROWS * padded_width(problem.head_dim) * size
    return Tile(
        rows=ROWS,
        columns=COLUMNS,
        row_step=ROWS,
        column_step=COLUMNS,
        demands=(
            Demand("products on wgmma", "tile", 2 * ROWS * COLUMNS * width, "wgmma_bf16_burst_flops_per_s"),
            Demand("operands from shared memory", "tile", operand_bytes, "smem_bandwidth_bytes_per_clk_sm"),
            Demand("exponentials", "tile", ROWS * COLUMNS, "mufu_ex2_per_clk_sm"),
            Demand("K and V from L2", "tile", kv_bytes, "l2_bandwidth_bytes_per_s"),
            Demand("K and V from DRAM", "tile", dram_bytes, "dram_bandwidth_bytes_per_s"),
            Demand("turns", "turns", WARPGROUPS, "wgmma_n128_bf16_latency_cycles"),
        ),
        edge=(Demand("Q and out", "edge", ROWS * width * size, "dram_bandwidth_bytes_per_s"),),
        heads=heads,
        split_keys=one,
    )


def warpgroups(problem: AttentionProblem, config: Config) -> WarpgroupTile | None:
    """The same tile, but where one query is served otherwise."""
    if problem.seq_q == 1 and not problem.varlen:
        return None
    width, value_width = padded_width(problem.head_dim), padded_width(problem.head_dim_v)
    return WarpgroupTile(COLUMNS, WARPGROUPS, width, value_width, q_in_registers=False)


def forward(
    query: Tensor, key: Tensor, value: Tensor, problem: AttentionProblem, config: Config, extras: Extras = NO_EXTRAS
) -> Pair:
    """Out (B, Hq, Sq, Dv) and lse (B, Hq, Sq), as attention.kernels.common.layout has them."""
    import torch

    def call(q: Tensor, k: Tensor, v: Tensor, causal: bool, scale: float) -> Pair:
        kernel = torch.ops.aten._scaled_dot_product_cudnn_attention
        out, lse, *_ = kernel(q, k, v, None, True, 0.0, causal, False, scale=scale)
        return out, lse.reshape(out.shape[:-1])  # some releases return (B, Hq, Sq, 1)

    return by_squares(call, query, key, value, problem)


def backward(grad_out: Tensor, grad_lse: Tensor | None, given: Forwarded, wanted: Wanted) -> Gradients:
    import torch

    problem, zero = given.problem, no_dropout(given.query.device, torch.int64)
    operands: tuple[Tensor, ...] = (given.query, given.key, given.value, given.out)
    if any(readable(each) is not each for each in operands):
        # All in one order: torch keeps cuDNN's plans by the strides of q, k and v, and one made for an out that lies
        # otherwise than q gave the next call, torch's own included, wrong gradients (torch 2.11).
        operands = tuple(each.clone(memory_format=torch.contiguous_format) for each in operands)
    out = operands[-1]
    alike = grad_out.stride() == out.stride() and grad_out.data_ptr() % READ_BYTES == 0
    d_out = grad_out if alike else torch.empty_like(out).copy_(grad_out)
    found = torch.ops.aten._scaled_dot_product_cudnn_attention_backward(
        *(d_out, *operands, given.lse.unsqueeze(-1), zero, zero),
        *(None, None, None, problem.seq_q, problem.seq_kv, 0.0, problem.causal),
        scale=problem.softmax_scale,
    )
    return gradients(found, grad_out, given, wanted)


def _forward_on(
    home: str, archs: tuple[str, ...], unit: str, rank: int, tile: Callable[[AttentionProblem, Config], Tile] | None
) -> Variant:
    return Variant(
        path=f"{home}/forward/torch_cudnn",
        summary=f"torch: cuDNN attention on {unit}",
        owner="torch",
        archs=archs,
        refuses=refuses,
        tile=tile,
        residents=warpgroups if tile else None,
        pads=padded_width if tile else lambda head_dim: head_dim,
        first_seconds=PLAN_SECONDS,
        rank=rank,
        notes=limits.whose_choice,
    )


VARIANTS = (
    _forward_on("sm80", ("sm80", "sm86", "sm89", "sm120a"), "mma.sync", 2, None),
    _forward_on("sm90a", ("sm90a",), "wgmma", 0, tile),
    _forward_on("sm100a", ("sm100a", "sm103a"), "tcgen05", 0, None),
    Variant(
        path="sm90a/backward/torch_cudnn",
        summary="torch: cuDNN's backward, which is torch's own choice here, from any forward's out and lse",
        owner="torch",
        archs=("sm90a", "sm100a", "sm103a"),
        refuses=refuses_backward,
        withheld=withheld,
        features=frozenset({"attention sinks"}),
        rank=0,
    ),
)
