"""Attention on mma m16n8k8, for Turing: what it serves and what a tile asks."""

from dataclasses import replace
from pathlib import Path

from attention.kernels.common.family import SERVED, notes, padded_head_dim, readers, too_large
from attention.kernels.common.key_splits import AXIS, parts, pointless, workspace_bytes
from attention.kernels.common.spills import spills_of
from attention.kernels.common.staged import blocks, held_head_dim, refuses_bfloat16
from attention.kernels.sm75.forward.register_staged.arguments import SETTLED, build_of, shape_of
from attention.problem import AttentionProblem
from attention.variant import Config, Demand, Tile, Variant
from microbench.machine.arch import Arch

SPILLS = spills_of(Path(__file__).parent)


def illegal(problem: AttentionProblem, config: Config, arch: Arch) -> str | None:
    """Shared memory of a block and of an SM, registers, barriers that a larger tile spares, and warps without rows."""
    shape = shape_of(problem, config)
    assert arch.limits is not None
    if too_much := too_large(shape.smem_bytes, arch):
        return too_much
    of_file = padded_head_dim(problem.head_dim), shape.warps, shape.warp_rows, int(shape.key_splits > 1)
    most = SPILLS.most(problem, *of_file)
    if shape.tile_keys > most:
        return SPILLS.said(problem, most, *of_file)
    wider = replace(shape, tile_keys=2 * shape.tile_keys)
    if wider.tile_keys <= most and blocks(wider, arch.limits) >= blocks(shape, arch.limits):
        return f"meets two barriers every {shape.tile_keys} keys, where {wider.tile_keys} fit"
    half = replace(shape, tile_keys=shape.tile_keys // 2)
    if shape.tile_keys > 32 and blocks(shape, arch.limits) < blocks(half, arch.limits):
        return f"leaves an SM fewer blocks than {half.tile_keys} keys do"
    if shape.warps == 8 and problem.seq_q <= shape.tile_rows // 2:
        return f"four warps already hold all {problem.seq_q} queries"
    return pointless(problem, shape)


def tile(problem: AttentionProblem, config: Config) -> Tile:
    """Every warp reads all of K and V from shared memory, and Q where it does not stay in registers."""
    shape = shape_of(problem, config)
    rows, columns, width = shape.tile_rows, shape.tile_keys, shape.head_dim
    kv_bytes = 2 * columns * width * 2
    q_bytes = 0 if shape.q_in_registers else rows * width * 2
    return Tile(
        rows=rows,
        columns=columns,
        row_step=rows,
        column_step=columns,
        demands=(
            Demand("products on mma.sync", "tile", 4 * rows * columns * width, "mma_f16_burst_flops_per_s"),
            Demand("exponentials", "tile", rows * columns, "mufu_ex2_per_clk_sm"),
            Demand("K and V to registers", "tile", shape.warps * kv_bytes + q_bytes, "smem_bandwidth_bytes_per_clk_sm"),
            Demand("K and V from L2", "tile", kv_bytes, "l2_bandwidth_bytes_per_s"),
            Demand("K and V from DRAM", "tile", kv_bytes / readers(problem, rows), "dram_bandwidth_bytes_per_s"),
            Demand("barriers", "barrier", 4, "smem_latency_cycles"),
        ),
        edge=(Demand("Q and out", "edge", 4 * rows * width, "dram_bandwidth_bytes_per_s"), *parts(shape)),
        key_splits=shape.key_splits,
    )


VARIANT = Variant(
    summary="ldmatrix and mma m16n8k8, K and V by way of registers",
    owner="smscope",
    archs=("sm75",),
    features=SERVED,
    refuses=refuses_bfloat16,
    space=(("warps", (4, 8)), ("warp_rows", (16, 32)), ("tile_keys", (16, 32, 64)), AXIS),
    settled=SETTLED,
    illegal=illegal,
    tile=tile,
    builds=lambda problem, config: (build_of(problem, config),),
    workspace=lambda problem, config: workspace_bytes(problem, shape_of(problem, config)),
    signature=("HMMA", "LDSM"),
    pads=held_head_dim,
    rank=-1,
    unproven=True,
    notes=notes,
)
