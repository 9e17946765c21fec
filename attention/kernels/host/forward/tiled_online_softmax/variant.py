"""Tiled online softmax on the CPU: what it serves, its tiles, and what a tile asks of a core.

One thread works on one tile of queries at a time. Inside, scores live as [keys][lanes], a lane being one query, so that
a register block of `rows_of_product` x VECTORS accumulators does both products and no reduction crosses lanes.
"""

from attention.problem import DTYPE_BYTES, AttentionProblem
from attention.tile import Demand, Tile
from attention.variant import MEMORY, Config, Variant
from microbench.machine.arch import Arch

VECTORS = 2  # registers across: the lanes of two vectors are one panel of queries
WIDEST_PANEL = 32  # queries of a panel of f32 with 64-byte vectors: the most any CPU has
HEAD_DIM_MAX = 256


def rows_of_product(vector_bytes: int) -> int:
    """Accumulator rows that fit the registers beside two vectors of B and one broadcast of A.

    AVX-512 has 32 registers (8 * 2 + 3), AVX2 has 16 (6 * 2 + 3), SSE 16 and NEON 32 (4 * 2 + 3 serves both).
    """
    return {64: 8, 32: 6}.get(vector_bytes, 4)


def refuses(problem: AttentionProblem, arch: Arch) -> str | None:
    """Head dims above 256 are not written here."""
    widest = max(problem.head_dim, problem.head_dim_v)
    if widest > HEAD_DIM_MAX:
        return f"serves head dims up to {HEAD_DIM_MAX}, not {widest}"
    return None


def illegal(problem: AttentionProblem, config: Config, arch: Arch) -> str | None:
    """A tile no longer than needed: two tiles of queries that both hold all of them are the same tile."""
    if config["block_q"] % WIDEST_PANEL:
        return f"block_q must be a whole number of {WIDEST_PANEL}-query panels"
    if config["block_q"] >= 2 * max(problem.seq_q, WIDEST_PANEL):
        return f"half of block_q={config['block_q']} already holds all {problem.seq_q} queries"
    if config["block_kv"] >= 2 * max(problem.seq_kv, 64):
        return f"half of block_kv={config['block_kv']} already holds all {problem.seq_kv} keys"
    return None


def tile(problem: AttentionProblem, config: Config) -> Tile:
    """Demands of one tile; float64 counts twice, as a register holds half as many."""
    rows, columns = config["block_q"], config["block_kv"]
    size = max(4, DTYPE_BYTES[problem.dtype])
    wide = size // 4
    width = problem.head_dim + problem.head_dim_v
    lanes = WIDEST_PANEL // wide
    block = rows_of_product(64)
    multiply_adds = rows * columns * width
    # One k step of a register block: `block` broadcasts and VECTORS loads feed block * VECTORS multiply-adds.
    operand_bytes = multiply_adds * size * (block + VECTORS) / (block * VECTORS)
    panel_bytes = size * (lanes * (problem.head_dim + columns) + block * problem.head_dim)
    state_bytes = size * rows * width
    kv_tile_bytes = size * columns * width
    heads = 1 if problem.seq_q > rows else problem.batch * problem.heads_kv  # read in a call before a key comes again
    kv_bytes = size * problem.seq_kv * width * heads
    return Tile(
        rows=rows,
        columns=columns,
        row_step=lanes,
        column_step=block,
        demands=(
            Demand("multiply-adds", "products", multiply_adds * wide, "fma_f32_per_s"),
            Demand("operands to registers", "products", operand_bytes, MEMORY, panel_bytes),
            Demand("K and V", "products", kv_tile_bytes, MEMORY, kv_bytes),
            Demand("K and V for each panel", "products", kv_tile_bytes * (rows / lanes - 1), MEMORY, 2 * kv_tile_bytes),
            Demand("exponentials", "softmax", rows * columns * wide, "exp_f32_per_s"),
            Demand("outputs", "outputs", 2 * size * rows * problem.head_dim_v, MEMORY, state_bytes + panel_bytes),
        ),
        edge=(Demand("Q and out", "edge", rows * width * problem.element_bytes, "dram_bandwidth_bytes_per_s"),),
    )


def notes(problem: AttentionProblem) -> tuple[str, ...]:
    """Conversions and copies."""
    said = ["a tensor whose last dimension is not contiguous is copied first"]
    if problem.dtype in ("float16", "bfloat16"):
        said.append(f"{problem.dtype} is converted to float32 before and back after, one copy of Q, K, V and out")
    return tuple(said)


VARIANT = Variant(
    summary="Numba: register-blocked products with one query a lane, online softmax, K and V read in place",
    owner="smscope",
    archs=("host",),
    refuses=refuses,
    features=frozenset({"bottom-right causality", "sliding window"}),
    space=(("block_q", (32, 64, 128, 256)), ("block_kv", (64, 128, 256))),
    illegal=illegal,
    tile=tile,
    rank=2,  # on a CPU that nobody measured, torch's own kernel goes first
    notes=notes,
    compiles=True,
)
