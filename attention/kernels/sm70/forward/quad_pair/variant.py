"""Attention on mma m8n8k4, for Volta: what it serves and what a tile asks."""

from dataclasses import replace
from pathlib import Path

from attention.kernels.common.family import SERVED, notes, padded_head_dim, readers, too_large
from attention.kernels.common.key_splits import AXIS, parts, pointless, workspace_bytes
from attention.kernels.common.spills import spills_of
from attention.kernels.common.staged import blocks, held_head_dim, refuses_bfloat16
from attention.kernels.sm70.forward.quad_pair.arguments import SETTLED, build_of, shape_of
from attention.problem import AttentionProblem
from attention.variant import Config, Demand, Tile, Variant
from microbench.machine.arch import Arch

SPILLS = spills_of(Path(__file__).parent)


def illegal(problem: AttentionProblem, config: Config, arch: Arch) -> str | None:
    """Shared memory of the block, registers, rows that two warps share, and warps that would have no rows."""
    shape = shape_of(problem, config)
    assert arch.limits is not None
    if shape.split > 1 and shape.p_in_registers:
        return "has the keys of a row on two warps, between which p goes through shared memory"
    if too_much := too_large(shape.smem_bytes, arch):
        return too_much
    of_file = (
        padded_head_dim(problem.head_dim),
        shape.warps,
        shape.warp_rows,
        int(shape.p_in_registers),
        int(shape.key_splits > 1),
    )
    most = SPILLS.most(problem, *of_file)
    if shape.tile_keys > most:
        return SPILLS.said(problem, most, *of_file)
    wider = replace(shape, tile_keys=2 * shape.tile_keys)
    if wider.tile_keys <= most and blocks(wider, arch.limits) >= blocks(shape, arch.limits):
        return f"meets two barriers every {shape.tile_keys} keys, where {wider.tile_keys} fit"
    if shape.warps == 8 and shape.split == 1 and problem.seq_q <= shape.tile_rows // 2:
        return f"four warps already hold all {problem.seq_q} queries"
    return pointless(problem, shape)


def tile(problem: AttentionProblem, config: Config) -> Tile:
    """Every warp reads all of K and V from shared memory, with both column pairs' lanes counted."""
    shape = shape_of(problem, config)
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
            Demand("K and V to registers", "tile", 2 * shape.warps * kv_bytes, "smem_bandwidth_bytes_per_clk_sm"),
            Demand("K and V from L2", "tile", kv_bytes, "l2_bandwidth_bytes_per_s"),
            Demand("K and V from DRAM", "tile", kv_bytes / readers(problem, rows), "dram_bandwidth_bytes_per_s"),
            Demand("barriers", "barrier", 4, "smem_latency_cycles"),
        ),
        edge=(Demand("Q and out", "edge", 4 * rows * width, "dram_bandwidth_bytes_per_s"), *parts(shape)),
        key_splits=shape.key_splits,
    )


VARIANT = Variant(
    summary="mma m8n8k4 in quad pairs two by two, K and V by way of registers",
    owner="smscope",
    archs=("sm70",),
    features=SERVED,
    refuses=refuses_bfloat16,
    space=(("warps", (4, 8)), ("warp_rows", (16, 32)), ("tile_keys", (32, 64)), ("p_in_registers", (0, 1)), AXIS),
    settled=SETTLED,
    illegal=illegal,
    tile=tile,
    builds=lambda problem, config: (build_of(problem, config),),
    workspace=lambda problem, config: workspace_bytes(problem, shape_of(problem, config)),
    signature=("HMMA",),
    pads=held_head_dim,
    rank=-1,
    unproven=True,
    notes=notes,
)
