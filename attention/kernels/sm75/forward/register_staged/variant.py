"""Attention on mma m16n8k8, for Turing: what it serves and what a tile asks."""

from dataclasses import replace
from pathlib import Path

from attention.kernels.common.family import SERVED, held_head_dim, notes_of, padded_head_dim
from attention.kernels.common.key_splits import AXIS, workspace_bytes
from attention.kernels.common.spills import spills_of
from attention.kernels.common.staged import blocks, refuses_all_but_float16
from attention.kernels.common.staged_tile import outgrown, staged_tile
from attention.kernels.sm75.forward.register_staged.arguments import SETTLED, build_of, shape_of
from attention.problem import AttentionProblem
from attention.tile import Tile
from attention.variant import Config, Variant
from microbench.machine.arch import Arch

SPILLS = spills_of(Path(__file__).parent)


def illegal(problem: AttentionProblem, config: Config, arch: Arch) -> str | None:
    """Beside what outgrows every tile, blocks of an SM that fewer keys would leave room for."""
    shape = shape_of(problem, config)
    built = padded_head_dim(problem.head_dim), shape.warps, shape.warp_rows, int(shape.key_splits > 1)
    if why := outgrown(problem, shape, arch, SPILLS, *built):
        return why
    half = replace(shape, tile_keys=shape.tile_keys // 2)
    assert arch.limits is not None
    if shape.tile_keys > 32 and blocks(shape, arch.limits) < blocks(half, arch.limits):
        return f"leaves an SM fewer blocks than {half.tile_keys} keys do"
    return None


def tile(problem: AttentionProblem, config: Config) -> Tile:
    """Every warp reads all of K and V from shared memory, and Q where it does not stay in registers."""
    shape = shape_of(problem, config)
    kv_bytes, q_bytes = 4 * shape.tile_keys * shape.head_dim, 2 * shape.head_dim * shape.tile_rows
    return staged_tile(problem, shape, shape.warps * kv_bytes + (0 if shape.q_in_registers else q_bytes))


VARIANT = Variant(
    summary="ldmatrix and mma m16n8k8, K and V by way of registers",
    owner="smscope",
    archs=("sm75",),
    features=SERVED,
    refuses=refuses_all_but_float16,
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
    notes=notes_of(held_head_dim),
)
