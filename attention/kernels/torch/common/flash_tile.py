"""What a tile of FlashAttention-2 asks of a GPU, in torch's build of it.

Tiles as in its launch template: 128 queries by 128 keys at head dim 64, else by 64, on four warps. Nothing inside
overlaps products with exponentials but a second block on the same SM. Where blocks are few, of however many queries,
tiles are of 64 rows whose keys are split over blocks (profiled on an H100, up to 1024 queries); one query shares a tile
with those of its group.
"""

import math

from attention.kernels.common.family import readers
from attention.problem import AttentionProblem
from attention.tile import Demand, Tile, WarpTile
from attention.variant import Config

WARPS = 4
ROWS, SPLIT_ROWS = 128, 64
HELD = 32  # of whose multiples are the head dims that it is built for
LARGE = 224  # beyond which head dims have a template of their own
SMS = 132  # stand for all GPUs: of two blocks an SM it fills 0.8 before it splits no keys, and 0.85 of the best it can
MOST_SPLIT_BLOCKS, ENOUGH, MOST_SPLITS = 0.8 * 2 * SMS, 0.85, 128  # num_splits_heuristic
# So many keys are one of the parts that it deals out, by head dims up to these (get_num_splits), and more take a second
# kernel, which adds the parts: 3.7 to 8.8 us on an H100, of 10 to 65.
PART_KEYS = ((64, 256), (128, 128), (256, 64))


def tile(problem: AttentionProblem, config: Config) -> Tile:
    """Every warp reads all of K and V from shared memory; L2 gives them once to the block."""
    few, heads, columns = is_few(problem), shared_heads(problem), _columns(problem)
    rows = SPLIT_ROWS if few else ROWS
    kv_bytes = columns * 2 * problem.head_dim * problem.element_bytes
    flops, dram_bytes = 4 * rows * columns * problem.head_dim, kv_bytes * heads / readers(problem, rows)
    return Tile(
        rows=rows,
        columns=columns,
        row_step=rows,
        column_step=columns,
        demands=(
            Demand("products on mma.sync", "products", flops, "mma_bf16_burst_flops_per_s"),
            Demand("K and V to registers", "products", WARPS * kv_bytes, "smem_bandwidth_bytes_per_clk_sm"),
            Demand("K and V from L2", "products", kv_bytes, "l2_bandwidth_bytes_per_s"),
            Demand("K and V from DRAM", "products", dram_bytes, "dram_bandwidth_bytes_per_s"),
            Demand("exponentials", "softmax", rows * columns, "mufu_ex2_per_clk_sm"),
        ),
        edge=(Demand("Q and out", "edge", rows * kv_bytes / columns, "dram_bandwidth_bytes_per_s"),),
        heads=heads,
        split_keys=few and problem.window == (-1, -1),  # it splits all keys, and a window lies in a part or two
        kernels=2 if in_parts(problem) else 1,
    )


def residents(problem: AttentionProblem, config: Config) -> WarpTile:
    """The same tile as warps that share an SM, of which those without rows multiply as well.

    Of the largest head dims it is of 64 rows on Hopper, so that an SM has room for two (run_mha_fwd_hdim256).
    """
    held = -(-problem.head_dim // HELD) * HELD
    small = is_few(problem) or held > LARGE
    return WarpTile(
        blocks=2 if small or held <= 128 else 1,
        warps=WARPS,
        warp_rows=(SPLIT_ROWS if small else ROWS) // WARPS,
        keys=_columns(problem),
        slice_keys=_columns(problem),
        head_dim=held,
        value_dim=held,
        q_in_registers=False,
        ahead=1,
        group=shared_heads(problem),
        key_splits=_splits(problem),
        threads=32 * WARPS,
        pipelined=False,
        kernels=2 if in_parts(problem) else 1,
    )


def shared_heads(problem: AttentionProblem) -> int:
    """Query heads that share a tile's rows."""
    return problem.heads_q // problem.heads_kv if problem.seq_q == 1 and problem.window == (-1, -1) else 1


def is_few(problem: AttentionProblem) -> bool:
    """Whether its blocks are few: then it takes tiles of few rows, over which keys may be split."""
    return not _is_packed(problem) and _few_blocks(problem) < MOST_SPLIT_BLOCKS


def _is_packed(problem: AttentionProblem) -> bool:
    """Whether sequences are given by where each begins, as several queries beside ranges of keys are, too."""
    return problem.varlen or (problem.ranges and problem.seq_q > 1)


def in_parts(problem: AttentionProblem) -> bool:
    """Whether a second kernel adds parts up."""
    return is_few(problem) and problem.seq_kv > _part_keys(problem.head_dim)


def _few_blocks(problem: AttentionProblem) -> int:
    return problem.batch * problem.heads_q // shared_heads(problem) * -(-problem.seq_q // SPLIT_ROWS)


def _splits(problem: AttentionProblem) -> int:
    """Blocks that share the keys of a tile: the fewest that fill the GPU nearly as well as any number of them."""
    if not in_parts(problem):
        return 1
    parts, places = math.ceil(problem.seq_kv / _part_keys(problem.head_dim)), 2 * SMS
    filled, blocks, before = [0.0], _few_blocks(problem), 0
    for splits in range(1, min(MOST_SPLITS, places, parts) + 1):
        rounds, of_one = blocks * splits / places, -(-parts // splits)
        filled.append(0.0 if of_one == before else rounds / math.ceil(rounds))
        before = of_one
    enough = ENOUGH * max(filled)
    chosen = next(splits for splits, share in enumerate(filled) if share >= enough)
    return max(1, round(chosen * _seen(problem)))


def _seen(problem: AttentionProblem) -> float:
    """The share of all keys that lie in a window of the queries: the other parts are empty."""
    left, right = problem.window
    reach = problem.seq_q + left + max(right, 0) if left >= 0 else problem.seq_kv
    return min(1.0, reach / problem.seq_kv)


def _part_keys(head_dim: int) -> int:
    return next(keys for dim, keys in PART_KEYS if head_dim <= dim)


def _columns(problem: AttentionProblem) -> int:
    return 128 if problem.head_dim <= 64 else 64
