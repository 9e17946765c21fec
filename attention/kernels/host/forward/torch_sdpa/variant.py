"""Torch's own CPU kernel as a candidate: blocked flash attention over the BLAS that torch was built with.

Block sizes as in aten/src/ATen/native/cpu/FlashAttentionKernel.cpp: 512 keys, and 32, 64 or 256 queries.
"""

from attention.problem import AttentionProblem
from attention.torch_limits import MOST_MASKED, band_in_mask, torch_needs_positive_scale
from attention.variant import MEMORY, Config, Demand, Tile, Variant
from microbench.arch import Arch

KEYS = 512
QUERIES = ((768, 256), (192, 64), (0, 32))
SCORE_PASSES = (
    4  # the product writes a score, the maximum reads it, exp reads and writes it in place, the product reads it
)
SCORE_BYTES = 4


def refuses(problem: AttentionProblem, arch: Arch) -> str | None:
    """The kernel behind `_scaled_dot_product_flash_attention_for_cpu`, which returns lse."""
    if problem.head_dim != problem.head_dim_v:
        return f"needs one head dim for all, not {problem.head_dim} and {problem.head_dim_v}"
    if band_in_mask(problem):
        if problem.mask == "none" and not problem.sinks:
            return "computes all keys, where a band alone hides some"
        if problem.seq_q * problem.seq_kv > MOST_MASKED:
            return f"writes a band into a mask, of at most {MOST_MASKED} scores a head"
    return torch_needs_positive_scale(problem)


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


VARIANT = Variant(
    summary="torch: flash attention on the CPU, over torch's BLAS",
    owner="torch",
    archs=("host",),
    refuses=refuses,
    features=frozenset({"bool mask", "float mask", "attention sinks", "sliding window", "bottom-right causality"}),
    tile=tile,
    rank=1,
    notes=notes,
)
