"""Attention on mma m8n8k4, for Volta: what it serves and what a tile asks."""

from pathlib import Path

from attention.kernels.common.family import SERVED, held_head_dim, notes_of, padded_head_dim
from attention.kernels.common.key_splits import AXIS, workspace_bytes
from attention.kernels.common.spills import spills_of
from attention.kernels.common.staged import refuses_all_but_float16
from attention.kernels.common.staged_tile import outgrown, staged_tile
from attention.kernels.sm70.forward.quad_pair.arguments import SETTLED, SPAN, build_of, shape_of
from attention.problem import AttentionProblem
from attention.tile import Tile
from attention.variant import Config, Variant
from microbench.machine.arch import Arch

SPILLS = spills_of(Path(__file__).parent)


def illegal(problem: AttentionProblem, config: Config, arch: Arch) -> str | None:
    """Beside what outgrows every tile, p between two warps that share rows."""
    shape = shape_of(problem, config)
    if shape.split > 1 and shape.p_in_registers:
        return "has the keys of a row on two warps, between which p goes through shared memory"
    built = padded_head_dim(problem.head_dim), shape.warps, shape.warp_rows
    return outgrown(problem, shape, arch, SPILLS, *built, int(shape.p_in_registers), int(shape.key_splits > 1))


def tile(problem: AttentionProblem, config: Config) -> Tile:
    """Every warp reads all of K and V from shared memory, and a part of its Q, for both column pairs' lanes.

    p goes through the same port on its way to be an operand. By shuffles: three words of a lane for every two of p
    (products.cuh, fetch_p). By shared memory: each score stored, and read for both column pairs' lanes by every warp of
    its row, which none begins before its lanes have stored theirs: a store and a load that its products wait for.
    """
    shape = shape_of(problem, config)
    kv_bytes, q_bytes = 4 * shape.tile_keys * shape.head_dim, 2 * SPAN * shape.shared_spans * shape.tile_rows
    p_bytes = 2 * shape.tile_rows * shape.tile_keys
    through_port = p_bytes * 3 // 2 if shape.p_in_registers else p_bytes * (1 + 2 * shape.split)
    waits = 0 if shape.p_in_registers else 2
    return staged_tile(problem, shape, 2 * (shape.warps * kv_bytes + q_bytes) + through_port, waits)


VARIANT = Variant(
    summary="mma m8n8k4 in quad pairs two by two, K and V by way of registers",
    owner="smscope",
    archs=("sm70",),
    features=SERVED,
    refuses=refuses_all_but_float16,
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
    notes=notes_of(held_head_dim),
)
