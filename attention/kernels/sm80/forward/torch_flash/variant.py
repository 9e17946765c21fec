"""Torch's FlashAttention-2 on a GPU: mma.sync, and softmax that waits for the products of its own block.

Tiles as in FlashAttention-2's launch template: 128 queries by 128 keys at head dim 64, else by 64, on four warps.
Nothing inside overlaps products with exponentials but a second block on the same SM, so that the model adds them up.
Few queries take tiles of 64 rows, whose keys are split over blocks while blocks are few; one query shares a tile with
those of its group.
"""

from attention.corrections import FEW_QUERIES
from attention.cuda.family import readers
from attention.problem import AttentionProblem
from attention.torch_limits import torch_needs_positive_scale
from attention.variant import Config, Demand, Tile, Variant
from microbench.arch import Arch

WARPS = 4
HEAD_DIM_MAX = 256
SPLIT_ROWS = 64
# It splits keys where blocks would fill less than 0.8 of two a SM (num_splits_heuristic); 132 SMs stand for all GPUs.
MOST_SPLIT_BLOCKS = 0.8 * 2 * 132


def refuses(problem: AttentionProblem, arch: Arch) -> str | None:
    """The limits in torch's sdp_utils."""
    if problem.dtype not in ("float16", "bfloat16"):
        return f"serves float16 and bfloat16, not {problem.dtype}"
    if problem.mask != "none":
        return f"takes no {problem.mask} mask"
    if problem.head_dim != problem.head_dim_v:
        return f"needs one head dim for all, not {problem.head_dim} and {problem.head_dim_v}"
    if problem.head_dim > HEAD_DIM_MAX:
        return f"serves head dims up to {HEAD_DIM_MAX}, not {problem.head_dim}"
    moves = problem.alignment == "bottom_right" or problem.seq_q == problem.seq_kv
    if problem.window != (-1, -1) and not moves:
        return "aligns windows bottom-right"
    return torch_needs_positive_scale(problem)


def tile(problem: AttentionProblem, config: Config) -> Tile:
    """Every warp reads all of K and V from shared memory; L2 gives them once to the block."""
    heads = problem.heads_q // problem.heads_kv if problem.seq_q == 1 and problem.window == (-1, -1) else 1
    blocks = problem.batch * problem.heads_q // heads * -(-problem.seq_q // SPLIT_ROWS)
    few = problem.seq_q <= FEW_QUERIES and not problem.varlen and blocks < MOST_SPLIT_BLOCKS
    rows, columns = SPLIT_ROWS if few else 128, 128 if problem.head_dim <= 64 else 64
    kv_bytes = columns * 2 * problem.head_dim * problem.element_bytes
    dram_bytes = kv_bytes * heads / readers(problem, rows)
    return Tile(
        rows=rows,
        columns=columns,
        row_step=rows,
        column_step=columns,
        demands=(
            Demand("products on mma.sync", "products", 4 * rows * columns * problem.head_dim, "mma_bf16_flops_per_s"),
            Demand("K and V to registers", "products", WARPS * kv_bytes, "smem_bandwidth_bytes_per_clk_sm"),
            Demand("K and V from L2", "products", kv_bytes, "l2_bandwidth_bytes_per_s"),
            Demand("K and V from DRAM", "products", dram_bytes, "dram_bandwidth_bytes_per_s"),
            Demand("exponentials", "softmax", rows * columns, "mufu_ex2_per_clk_sm"),
        ),
        edge=(Demand("Q and out", "edge", rows * kv_bytes / columns, "dram_bandwidth_bytes_per_s"),),
        heads=heads,
        split_keys=few,
    )


def notes(problem: AttentionProblem) -> tuple[str, ...]:
    """What a prediction of somebody else's kernel is worth."""
    return ("torch's dispatcher, not this choice, decides among torch's backends when the call runs",)


FEATURES: frozenset[str] = frozenset({"bottom-right causality", "sliding window", "variable lengths"})

VARIANT = Variant(
    summary="torch: FlashAttention-2 on mma.sync",
    owner="torch",
    archs=("sm80", "sm86", "sm89", "sm90a", "sm100a", "sm103a", "sm120a"),
    refuses=refuses,
    features=FEATURES,
    tile=tile,
    rank=1,
    notes=notes,
)
