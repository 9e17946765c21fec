"""Attention for few rows and many keys, on mma.sync: what it serves and what a tile asks."""

from dataclasses import replace
from functools import lru_cache

from attention.kernels.common.family import (
    LONG,
    SERVED,
    STEP,
    held_head_dim,
    notes_of,
    refuses_but_value_dims,
    resized,
    tiles_of,
    too_large,
)
from attention.kernels.common.halves import in_halves
from attention.kernels.common.key_splits import parts, too_many, workspace_bytes
from attention.kernels.sm80.forward.software_pipelined import variant as whole
from attention.kernels.sm80.forward.software_pipelined.arguments import tuned_head_dim
from attention.kernels.sm80.forward.split_keys.arguments import (
    FEW_STAGES,
    MOST_STAGES,
    SETTLED,
    Shape,
    build_of,
    shape_of,
)
from attention.problem import AttentionProblem
from attention.tile import Tile, WarpTile
from attention.variant import Config, Lasting, Variant, settle
from microbench.machine.arch import Arch

WARPS = (4, 8)
MOST_QUERIES = 512  # of more, tiles of 128 rows read K and V less often
KEYS = 64  # whose addresses 16 rows a warp hold at head dim 128, whatever is asked beside, and of 64 as many bytes
# Beside kernels of warpgroups it is for few queries or long caches: of 297 problems with more queries and fewer keys,
# on an H100 and an H200, its best tile was the fastest of one, by 2.6 %, and 3 % or more behind in all but three.
WARPGROUPS = "sm90a"
FEW_BESIDE, LONG_BESIDE = 64, 2048
PARTS_AT_ONCE, FEW_PARTS = 16, 8  # as registers allow (added_parts.cuh)
ALONE = "has warps with rows of their own, and rings of two tiles of K"
BLOCKS = 2  # on an SM: while one waits for its first keys the other reads


def refuses(problem: AttentionProblem, arch: Arch) -> str | None:
    """Many queries, and what no kernel of sm80 is written for."""
    if problem.seq_q > MOST_QUERIES:
        return f"is written for up to {MOST_QUERIES} queries, not {problem.seq_q}"
    return refuses_but_value_dims(STEP)(problem, arch)


def outdone(problem: AttentionProblem, arch: Arch) -> str | None:
    """Many queries of few keys, where warpgroups have kernels."""
    if arch.name != WARPGROUPS or problem.seq_q <= FEW_BESIDE or problem.seq_kv >= LONG_BESIDE:
        return None
    return f"is slower than others of ours with more than {FEW_BESIDE} queries and less than {LONG_BESIDE} keys"


def illegal(problem: AttentionProblem, config: Config, arch: Arch) -> str | None:
    """Shared memory and registers of the block, and rows that fill the GPU alone.

    More blocks than tiles of keys are legal: how long a cache is, a launch that a graph repeats does not know.
    """
    return _why_not_any_split(_of_any_keys(problem), config, arch) or _why_not_split(problem, config, arch)


def _why_not_split(problem: AttentionProblem, config: Config, arch: Arch) -> str | None:
    splits = config["key_splits"]
    return None if splits == 1 else too_many(_tiles(problem, config["warps"], config["tile_keys"]), splits)


@lru_cache(maxsize=64)  # a choice asks for each number of blocks
def _tiles(problem: AttentionProblem, warps: int, tile_keys: int) -> int:
    shape = _shape(_of_any_keys(problem), warps, tile_keys)
    return tiles_of(problem, shape.tile_rows, shape.group)


@lru_cache(maxsize=64)
def _of_any_keys(problem: AttentionProblem) -> AttentionProblem:
    """What stands for all problems of the same queries and heads of a group: no number of keys decides on tiles."""
    if problem.varlen:  # by the lengths of packed sequences tiles are dealt
        return problem
    group = problem.heads_q // problem.heads_kv
    return resized(problem, batch=1, heads_q=group, heads_kv=1, seq_kv=LONG)


def _tile_of(config: Config) -> tuple[int, int, int | None]:
    """Warps, keys, and how many tiles of them; None where that is left to what is settled, which takes long to ask."""
    return config["warps"], config["tile_keys"], dict(config.values).get("key_stages")


def _lone(warps: int, tile_keys: int, key_stages: int | None = None) -> Config:
    """Of tiles of so many rows and keys what they have alike, however many blocks share them."""
    stages = () if key_stages is None else (("key_stages", key_stages),)
    return Config((("warps", warps), ("tile_keys", tile_keys), ("key_splits", 1), *stages))


@lru_cache(maxsize=1024)
def _shape(problem: AttentionProblem, warps: int, tile_keys: int, key_stages: int | None = None) -> Shape:
    return shape_of(problem, _lone(warps, tile_keys, key_stages))


def _of_other_rows(problem: AttentionProblem, shape: Shape) -> str | None:
    """Eight warps are for rows that two tiles of four would hold: one of eight reads K and V once."""
    rows, least, most = problem.seq_q * shape.group, WARPS[0] * shape.warp_rows, shape.warps * shape.warp_rows
    if shape.warps == WARPS[0] or least < rows <= most:
        return None
    return f"is for {least + 1} to {most} rows of a sequence, not {rows}, in a tile of {shape.warps} warps"


def _of_own_rows(problem: AttentionProblem, shape: Shape, asked: int) -> int:
    """Blocks that registers of an SM hold: as many as are asked for, and more where ptxas needs fewer registers.

    To head dim 96 it takes 128 to 168 of a thread, and to 80 with a mask, so that three blocks of four warps have room
    (NVRTC 13.0): by two 478 causal rows of head dim 96 came 13 % too slow.
    """
    narrow = max(shape.head_dim, shape.value_dim) <= (96 if problem.mask == "none" else 80)
    return max(asked, 3 * WARPS[0] // shape.warps) if narrow else asked


@lru_cache(maxsize=1024)
def _residents(
    problem: AttentionProblem, warps: int, tile_keys: int, key_stages: int | None, key_splits: int
) -> WarpTile:
    shape = _shape(problem, warps, tile_keys, key_stages)
    settled = settle(SETTLED, problem, _lone(warps, tile_keys))
    busy = -(-shape.part_rows // shape.warp_rows) * shape.key_warps
    found = whole.residents(problem, settled)._replace(
        warps=busy,
        threads=shape.threads,
        group=shape.group,
        key_splits=key_splits,
        parts_at_once=PARTS_AT_ONCE if settled["blocks"] <= BLOCKS else FEW_PARTS,
    )
    if shape.key_warps == 1:
        return found._replace(blocks=_of_own_rows(problem, shape, settled["blocks"]), smem_bytes=shape.smem_bytes)
    return found._replace(
        key_span_bytes=_span_bytes(shape.head_dim),
        value_span_bytes=_span_bytes(shape.value_dim),
        key_warps=shape.key_warps,
        stages=shape.key_stages,
        smem_bytes=shape.smem_bytes,
        used_rows=shape.part_rows,
    )


def _span_bytes(held_dim: int) -> int:
    """Of warps that share rows: a line of a row, and whole rows that are none of so many (consecutive.cuh)."""
    return 2 * held_dim if held_dim % 64 else 128


def _why_not_any_split(problem: AttentionProblem, config: Config, arch: Arch) -> str | None:
    return _why_not(problem, *_tile_of(config), arch)


@lru_cache(maxsize=1024)
def _why_not(problem: AttentionProblem, warps: int, tile_keys: int, key_stages: int | None, arch: Arch) -> str | None:
    shape = _shape(problem, warps, tile_keys, key_stages)
    assert arch.limits is not None
    if key_stages not in (None, shape.key_stages):
        return f"holds {shape.key_stages} tiles of keys, as warps share rows" if shape.key_stages else ALONE
    if other_rows := _of_other_rows(problem, shape):
        return other_rows
    if too_much := too_large(shape.smem_bytes, arch):
        return too_much
    built = tuned_head_dim(problem), shape.warps
    widest = max(shape.head_dim, shape.value_dim)
    shared = shape.key_warps > 1 and widest <= 128  # a warp holds no more scores of a tile of twice the keys
    # Of 65 to 96 numbers three stages of 128 keys leave an SM one block for three: 64 keys came within 3 % of the best
    # on 83 of 84 problems of the sets b and of use, and these on 15.
    lone = shared and 64 < widest <= 96
    # Threads have as many addresses.
    twice = (shared and not lone) or widest <= 64 or (widest <= 128 and shape.warps > WARPS[0])
    most = 2 * KEYS if twice else KEYS if widest <= 128 else whole.SPILLS.most(problem, *built)
    if shape.tile_keys > most:
        return whole.SPILLS.said(problem, most, *built)
    wider, blocks = _shape(problem, shape.warps, 2 * tile_keys), BLOCKS * WARPS[0] // shape.warps
    if wider.tile_keys <= most and whole.blocks(wider, arch.limits) >= blocks:
        return f"meets a barrier every {shape.tile_keys} keys, where {wider.tile_keys} fit"
    if shared:  # what few blocks wait for comes in fewer steps: up to 5 % on an H200
        return None
    half = _shape(problem, shape.warps, tile_keys // 2)
    if tile_keys > 16 and whole.blocks(shape, arch.limits) < min(blocks, whole.blocks(half, arch.limits)):
        return f"leaves an SM fewer blocks than {half.tile_keys} keys do"
    return None


def tile(problem: AttentionProblem, config: Config) -> Tile:
    """That of the kernel for many rows, with heads that share one and blocks that share its keys."""
    shape, settled = shape_of(problem, config), settle(SETTLED, problem, config)
    found = whole.tile(problem, settled)
    edge = (*found.edge, *parts(shape))
    return replace(found, edge=edge, heads=shape.group, key_splits=shape.key_splits)


def residents(problem: AttentionProblem, config: Config) -> WarpTile:
    """The same, as warps that share the units of an SM: those that have rows."""
    return _residents(_of_any_keys(problem), *_tile_of(config), config["key_splits"])


ONE_LAUNCH = Variant(
    summary="cp.async and mma.sync over a part of the keys, heads of a group in one tile of rows",
    owner="smscope",
    archs=whole.VARIANT.archs,
    features=SERVED,
    refuses=refuses,
    space=(
        ("warps", WARPS),
        ("tile_keys", (16, 32, 64, 128)),
        ("key_splits", (1, 2, 4, 8, 16, 32, 64)),
        ("key_stages", (0, FEW_STAGES, MOST_STAGES)),
    ),
    settled=SETTLED,
    outdone=outdone,
    illegal=illegal,
    lasting=Lasting(_of_any_keys, _why_not_any_split, _why_not_split),
    tile=tile,
    residents=residents,
    builds=lambda problem, config: (build_of(problem, config),),
    workspace=lambda problem, config: workspace_bytes(problem, shape_of(problem, config)),
    signature=("HMMA", "LDSM", "LDGSTS"),
    pads=held_head_dim,
    rank=-1,
    notes=notes_of(held_head_dim),
)
VARIANT = in_halves(ONE_LAUNCH)
