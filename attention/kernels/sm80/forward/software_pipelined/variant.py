"""Attention on mma.sync, for Ampere and what speaks its instructions: what it serves and what a tile asks."""

from dataclasses import replace
from functools import cache, lru_cache
from pathlib import Path

from attention.features.mask import WIDE
from attention.kernels.common.family import (
    HEAD_DIMS,
    SERVED,
    STEP,
    held_head_dim,
    notes_of,
    of_any_length,
    readers,
    refuses_but_value_dims,
    too_large,
)
from attention.kernels.common.halves import in_halves
from attention.kernels.common.spills import spills_of
from attention.kernels.sm80.forward.software_pipelined.arguments import (
    SETTLED,
    Shape,
    build_of,
    shape_of,
    span_bytes,
    tuned_head_dim,
)
from attention.problem import AttentionProblem
from attention.tile import Demand, Tile, WarpTile
from attention.variant import Config, Lasting, Variant, settle
from microbench.machine.arch import Arch, Limits

SPILLS = spills_of(Path(__file__).parent)
LEADING, LEAST = 248, 16  # head dim, keys: eight warps have no register left for where a row begins beside 32 keys
NARROW_WARPS = 12  # that registers of an SM hold of rows of few columns
FULL = 32  # keys, where 128 columns of outputs fill 255 registers: at head dim 112 64 keys spill on sm86 and sm89


def illegal(problem: AttentionProblem, config: Config, arch: Arch) -> str | None:
    """Shared memory of the block, and warps that would have no rows."""
    alike = of_any_length(problem)
    if why_not := _why_not(alike, config, arch):
        return why_not
    if config["warps"] == 8 and problem.seq_q <= shape_of(alike, config).tile_rows // 2:
        return f"four warps already hold all {problem.seq_q} queries"
    return None


@lru_cache(maxsize=1024)
def _why_not(problem: AttentionProblem, config: Config, arch: Arch) -> str | None:
    shape = shape_of(problem, config)
    assert arch.limits is not None
    if too_much := too_large(shape.smem_bytes, arch):
        return too_much
    built = tuned_head_dim(problem), shape.warps
    most = SPILLS.most(problem, *built)
    if built[0] == 128 and shape.value_dim not in HEAD_DIMS:
        most = min(most, FULL)
    if problem.head_dim == LEADING and shape.warps == 8:
        most = LEAST
    if shape.tile_keys > most:
        return SPILLS.said(problem, most, *built)
    if shape.tile_keys == 16 and most >= 32 and _of_keys(shape, 32).smem_bytes <= arch.limits.smem_bytes_per_block:
        return "meets a barrier every 16 keys, where 32 fit"
    if shape.tile_keys == 32 and most >= 64 and _barriers_cost(shape) and _as_many_blocks(shape, 64, arch.limits):
        return "meets a barrier every 32 keys, where 64 fit"
    half = _of_keys(shape, shape.tile_keys // 2)
    if shape.tile_keys > 32 and blocks(shape, arch.limits) < min(8 // shape.warps, blocks(half, arch.limits)):
        return f"leaves an SM fewer blocks than {half.tile_keys} keys do"
    if shape.warps == 8 and shape.warp_rows == 32:
        return "is tuned with 32 rows a warp for four warps a block, not for eight"
    return None


def _barriers_cost(shape: Shape) -> bool:
    """Whether 64 keys are as fast as 32, or faster, wherever both fit.

    Eight warps have an SM to themselves, and nobody fills what they wait at a barrier. Of 478 problems of an H200 the
    lack of 32 keys cost them 0.01 to 0.06 %, and of 128 problems of short heads 0.1 (the sets b, sm80's kernels alone).
    """
    return shape.warps == 8 or max(shape.head_dim, shape.value_dim) <= 64


def _as_many_blocks(shape: Shape, tile_keys: int, limits: Limits) -> bool:
    held, wider = min(8 // shape.warps, blocks(shape, limits)), _of_keys(shape, tile_keys)
    return wider.smem_bytes <= limits.smem_bytes_per_block and blocks(wider, limits) >= held


@cache
def _of_keys(shape: Shape, tile_keys: int) -> Shape:
    return replace(shape, tile_keys=tile_keys)


def blocks(shape: Shape, limits: Limits) -> int:
    """How many blocks the shared memory of an SM holds, each with 1 KiB that the system takes (CUDA C++ guide)."""
    return limits.smem_bytes // (shape.smem_bytes + 1024)


def tile(problem: AttentionProblem, config: Config) -> Tile:
    """Every warp reads all of K and V from shared memory, and its exponentials stand behind its own products.

    That another block's products hide them is a hope that an H200 did not bear out: at head dims 64, 128 and 256 it
    reached 0.7 of what products alone allow, and 0.77 to 1.0 of products and exponentials one after another.
    """
    shape = shape_of(problem, config)
    rows, columns, both = shape.tile_rows, shape.tile_keys, shape.head_dim + shape.value_dim
    kv_bytes = 2 * columns * both
    q_bytes = 0 if shape.q_in_registers else 2 * rows * shape.head_dim
    exponentials = 3 if problem.softcap else 1  # tanh takes an exponential and a reciprocal
    # So many scores of a thread have their mask on its way at a time (features/mask.cuh); two blocks wait together.
    at_once = 16 if problem.mask_dtype == WIDE else 32
    waits = rows * columns / (32 * shape.warps) / at_once / 2
    mask = (Demand("mask from L2", "mask", waits, "l2_latency_cycles"),) if problem.mask != "none" else ()
    return Tile(
        rows=rows,
        columns=columns,
        row_step=rows,
        column_step=_slice(shape),
        demands=(
            Demand("products on mma.sync", "tile", 2 * rows * columns * both, "mma_bf16_burst_flops_per_s"),
            Demand("exponentials", "softmax", exponentials * rows * columns, "mufu_ex2_per_clk_sm"),
            Demand("K and V to registers", "tile", shape.warps * kv_bytes + q_bytes, "smem_bandwidth_bytes_per_clk_sm"),
            Demand("K and V from L2", "tile", kv_bytes, "l2_bandwidth_bytes_per_s"),
            Demand("K and V from DRAM", "tile", kv_bytes / readers(problem, rows), "dram_bandwidth_bytes_per_s"),
            *mask,
            # A tile ends in a barrier of the block, behind which its first scores wait for K from shared memory.
            Demand("barrier", "barrier", 2, "smem_latency_cycles"),
        ),
        edge=(Demand("Q and out", "edge", 2 * rows * both, "dram_bandwidth_bytes_per_s"),),
    )


def residents(problem: AttentionProblem, config: Config) -> WarpTile:
    """The same tile, as eight warps that share the units of an SM."""
    return _residents(of_any_length(problem), config)


@lru_cache(maxsize=1024)
def _residents(problem: AttentionProblem, config: Config) -> WarpTile:
    shape, settled = shape_of(problem, config), settle(SETTLED, problem, config)
    return WarpTile(
        blocks=max(settled["blocks"], NARROW_WARPS // shape.warps if _narrow(shape) else 0),
        warps=shape.warps,
        warp_rows=shape.warp_rows,
        keys=shape.tile_keys,
        slice_keys=settled["slice_keys"],
        head_dim=shape.head_dim,
        value_dim=shape.value_dim,
        q_in_registers=shape.q_in_registers,
        ahead=settled["ahead"],
        key_span_bytes=span_bytes(shape.head_dim),
        value_span_bytes=span_bytes(shape.value_dim),
        smem_bytes=shape.smem_bytes,
    )


def _narrow(shape: Shape) -> bool:
    """Whether a thread holds 16 rows' part of few columns, which takes 126 to 154 registers (NVRTC 13.0).

    Of masked rows of head dim 96 an SM holds three blocks of four warps: of eight came 35 to 45 % behind, where two of
    four were counted.
    """
    return shape.warp_rows == 16 and max(shape.head_dim, shape.value_dim) <= 96


def _slice(shape: Shape) -> int:
    return min(shape.tile_keys, shape.warp_rows)


ONE_LAUNCH = Variant(
    summary="cp.async, ldmatrix and mma.sync, scores of one slice beside p V of another",
    owner="smscope",
    archs=("sm80", "sm86", "sm89", "sm90a", "sm120a"),
    features=SERVED,
    refuses=refuses_but_value_dims(STEP),
    space=(("warps", (4, 8)), ("tile_keys", (16, 32, 64, 128))),
    settled=SETTLED,
    illegal=illegal,
    lasting=Lasting(of_any_length, _why_not),
    tile=tile,
    residents=residents,
    builds=lambda problem, config: (build_of(problem, config),),
    signature=("HMMA", "LDSM", "LDGSTS"),
    pads=held_head_dim,
    rank=-1,
    notes=notes_of(held_head_dim),
)
VARIANT = in_halves(ONE_LAUNCH)
