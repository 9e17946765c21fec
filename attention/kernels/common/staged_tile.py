"""Which tiles the kernels of Volta and Turing may have, and what one asks of the machine. No torch here."""

from dataclasses import replace

from attention.kernels.common.family import readers, too_large
from attention.kernels.common.key_splits import parts, pointless
from attention.kernels.common.spills import Spills
from attention.kernels.common.staged import Shape, blocks
from attention.problem import AttentionProblem
from attention.tile import Demand, Tile
from microbench.machine.arch import Arch


def outgrown(problem: AttentionProblem, shape: Shape, arch: Arch, spills: Spills, *of_file: int) -> str | None:
    """Shared memory, registers, barriers that a larger tile spares, warps without rows, and blocks without keys."""
    assert arch.limits is not None
    if too_much := too_large(shape.smem_bytes, arch):
        return too_much
    most = spills.most(problem, *of_file)
    if shape.tile_keys > most:
        return spills.said(problem, most, *of_file)
    wider = replace(shape, tile_keys=2 * shape.tile_keys)
    if wider.tile_keys <= most and blocks(wider, arch.limits) >= blocks(shape, arch.limits):
        return f"meets two barriers every {shape.tile_keys} keys, where {wider.tile_keys} fit"
    if shape.tile_rows == 8 * shape.warp_rows and problem.seq_q <= shape.tile_rows // 2:
        return f"four warps already hold all {problem.seq_q} queries"
    return pointless(problem, shape)


def staged_tile(problem: AttentionProblem, shape: Shape, to_registers: int, waits: int = 0) -> Tile:
    """What a tile asks for of which so many bytes go by the port of shared memory to registers.

    `waits`: latencies of shared memory that a warp sits out beside its barriers.
    """
    rows, columns, width = shape.tile_rows, shape.tile_keys, shape.head_dim
    kv_bytes = 2 * columns * width * 2
    return Tile(
        rows=rows,
        columns=columns,
        row_step=rows,
        column_step=columns,
        demands=(
            Demand("products on mma.sync", "tile", 4 * rows * columns * width, "mma_f16_burst_flops_per_s"),
            Demand("exponentials", "tile", rows * columns, "mufu_ex2_per_clk_sm"),
            Demand("operands to registers", "tile", to_registers, "smem_bandwidth_bytes_per_clk_sm"),
            Demand("K and V from L2", "tile", kv_bytes, "l2_bandwidth_bytes_per_s"),
            Demand("K and V from DRAM", "tile", kv_bytes / readers(problem, rows), "dram_bandwidth_bytes_per_s"),
            Demand("barriers", "barrier", 4 + waits, "smem_latency_cycles"),
        ),
        edge=(Demand("Q and out", "edge", 4 * rows * width, "dram_bandwidth_bytes_per_s"), *parts(shape)),
        key_splits=shape.key_splits,
    )
