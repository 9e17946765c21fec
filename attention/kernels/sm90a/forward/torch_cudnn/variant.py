"""cuDNN's attention through torch on Hopper: wgmma, with two warpgroups that take turns at products and softmax.

Tile and pipeline as in the SM90 kernel whose source cudnn-frontend publishes: 128 queries by 128 keys, K and V by TMA,
P in registers. Turns overlap products with exponentials, so that the model takes the larger of the two; each turn
starts behind the last product of the one before. One query shares a tile with those of its group, and its keys are
split over blocks; from two on neither happens (timings on an H200: 16 queries take 4 times as long as one).
"""

from attention.cuda.family import readers
from attention.kernels.sm80.forward.torch_cudnn.variant import PLAN_SECONDS, notes, refuses
from attention.problem import AttentionProblem
from attention.variant import Config, Demand, Tile, Variant

ROWS, COLUMNS = 128, 128
WARPGROUPS = 2


def padded(head_dim: int) -> int:
    """Multiples of 64: on an H100 head dim 96 takes it as long as 128, and 192 three quarters of 256."""
    return -(-head_dim // 64) * 64


def tile(problem: AttentionProblem, config: Config) -> Tile:
    """Both warpgroups read K and V from shared memory, and Q as well for the first product."""
    size = problem.element_bytes
    width = padded(problem.head_dim) + padded(problem.head_dim_v)
    kv_bytes = COLUMNS * width * size
    one = problem.seq_q == 1 and not problem.varlen
    heads = problem.heads_q // problem.heads_kv if one else 1
    dram_bytes = kv_bytes * heads / readers(problem, ROWS)
    operand_bytes = WARPGROUPS * kv_bytes + ROWS * padded(problem.head_dim) * size
    return Tile(
        rows=ROWS,
        columns=COLUMNS,
        row_step=ROWS,
        column_step=COLUMNS,
        demands=(
            Demand("products on wgmma", "tile", 2 * ROWS * COLUMNS * width, "wgmma_bf16_flops_per_s"),
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


VARIANT = Variant(
    summary="torch: cuDNN attention on wgmma",
    owner="torch",
    archs=("sm90a",),
    refuses=refuses,
    tile=tile,
    pads=padded,
    first_seconds=PLAN_SECONDS,
    rank=0,
    notes=notes,
)
