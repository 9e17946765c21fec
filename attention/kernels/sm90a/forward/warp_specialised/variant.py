"""Attention on Hopper: one producer warpgroup, two or three consumers on wgmma; what it serves and what a tile asks."""

from dataclasses import replace
from functools import cache, lru_cache
from pathlib import Path

from attention.kernels.common.family import (
    HEAD_DIMS,
    SERVED,
    STEP,
    ahead_row,
    asked_defines,
    dealt,
    held_head_dim,
    lead_defines,
    notes_of,
    of_any_length,
    readers,
    refuses_but_value_dims,
    too_large,
)
from attention.kernels.common.halves import in_halves
from attention.kernels.common.spills import spills_of
from attention.kernels.sm90a.forward.warp_specialised.arguments import (
    SETTLED,
    Shape,
    build_of,
    may_share,
    shape_of,
    tuned_head_dim,
)
from attention.kernels.sm90a.packed import packed, queries_of
from attention.problem import AttentionProblem
from attention.tile import RING, Demand, Tile, WarpgroupTile
from attention.variant import Config, Lasting, Variant, settle
from microbench.machine.arch import Arch

SPILLS = spills_of(Path(__file__).parent)
# Keys fewer than the next larger head dim on file holds beside features: narrow panels of V took addresses of their own
# (one of 105 compiled tiles spilled without it, at head dim 80). Fewer too of a value dim unlike, beside Q in
# registers (128 and 64 spill with 144, causal), or of rows that begin inside of sectors (120 with 144).
BETWEEN = 16
# Rows that cross took an H200 3 to 8 % less time at head dims 64 and 80 with up to 512 keys, nothing less at 128, and
# up to 4 % more at 1024 keys and beyond.
MOST_CROSSED, MOST_CROSSED_DIM, CROSSED_KEYS, MOST_STAGES = 512, 96, 384, 4
MOST_CROSSED_TILE = {2: 128, 3: 80}  # keys of a tile, by warpgroups
CROSSED = {"CAUSAL", "VARLEN"}
# Tiles that nobody misses, by 8,262 calls that an H100 and an H200 timed (data/experiments): of 144 keys, of more up to
# head dim 112 or beside Q in registers, and beyond 96 Q in registers of tiles that lie between 64 and 128 keys.
WIDE, WIDE_DIM, HELD_KEYS, HELD_DIM = 144, 112, (64, 128), 96
PACKED_KEYS = (64, 80, 112, 128)  # others brought 1 % at most (H200, ten problems of 8 to 96 rows of a group)
MASK_COPIED = (
    "a mask is copied first where its keys are not contiguous, or a row begins at no multiple of 16 bytes (of 4 beside "
    "ranges, where each head and sequence has a mask of its own)"
)


def illegal(problem: AttentionProblem, config: Config, arch: Arch) -> str | None:
    """What does not fit, and tiles that nobody misses."""
    return unfit(problem, config, arch) or _why_not_worth_it(of_any_length(problem), config)


def unfit(problem: AttentionProblem, config: Config, arch: Arch) -> str | None:
    """Shared memory of the block, registers of a consumer thread, and warpgroups that would have no rows."""
    return _why_not(of_any_length(problem), config, arch) or _why_not_of_lengths(problem, config, arch)


def _why_not_of_any_length(problem: AttentionProblem, config: Config, arch: Arch) -> str | None:
    return _why_not(problem, config, arch) or _why_not_worth_it(problem, config)


def _why_not_of_lengths(problem: AttentionProblem, config: Config, arch: Arch) -> str | None:
    group, held = _held(problem, config["warpgroups"])
    if config["warpgroups"] == 3 and problem.seq_q <= held:
        return f"two warpgroups already hold all {problem.seq_q} queries"
    if group and (why_not := _why_not_packed(of_any_length(problem), config)):
        return why_not
    return _why_not_crossed(problem, config) if config["stages"] > RING else None


@lru_cache(maxsize=64)  # a choice asks for each tile of keys
def _held(problem: AttentionProblem, warpgroups: int) -> tuple[int, int]:
    """Heads that share a tile's rows, or 0, and the queries that two warpgroups hold."""
    group = packed(problem, warpgroups)
    return group, 2 * queries_of(max(1, group))


@lru_cache(maxsize=1024)
def _why_not_packed(problem: AttentionProblem, config: Config) -> str | None:
    """Of heads that share rows, whose places take registers."""
    if config["tile_keys"] not in PACKED_KEYS:
        return f"takes tiles of {', '.join(map(str, PACKED_KEYS))} keys where heads of a group share rows"
    if config["q_in_registers"] or config["stages"] > RING:
        return "keeps rows of a group's heads in shared memory: few tiles of them follow one another"
    built = tuned_head_dim(problem, config), config["warpgroups"], config["q_in_registers"]
    most = SPILLS.most(problem, *built, unlike_alone=True) - BETWEEN
    crowded = problem.head_dim_v <= HEAD_DIMS[0] or is_between(problem, held_head_dim(problem.head_dim))
    if crowded and config["tile_keys"] > most:
        return f"may spill beyond {most} keys where heads of a group share rows"
    return None


def _why_not_crossed(problem: AttentionProblem, config: Config) -> str | None:
    """Where tiles of rows do not cross one another: consume.cuh."""
    if problem.seq_kv > MOST_CROSSED or problem.head_dim > MOST_CROSSED_DIM:
        return f"is for up to {MOST_CROSSED} keys and head dims up to {MOST_CROSSED_DIM}, of which rows cross"
    if not config["q_in_registers"]:
        return "needs Q in registers, so that the next rows' is there before the last product of these"
    if problem.head_dim_v != problem.head_dim or not asked_defines(problem) <= CROSSED:
        return "was compiled for causal and packed problems alone"
    if config["tile_keys"] > (most := MOST_CROSSED_TILE[config["warpgroups"]]):
        return f"may spill beyond {most} keys where rows cross"
    if config["stages"] != (wanted := min(MOST_STAGES, -(-CROSSED_KEYS // config["tile_keys"]))):
        return f"rows that cross take rings of {wanted} such tiles: {CROSSED_KEYS} keys, or {MOST_STAGES} tiles"
    return None


@lru_cache(maxsize=4096)
def _why_not(problem: AttentionProblem, config: Config, arch: Arch) -> str | None:
    shape = shape_of(problem, config)
    if shape.cluster > 1 and not (may_share(problem) or shape.shares_keys):
        return "shares between blocks K and V of long rows, or a mask of an even number of heads, if causal or not"
    if too_much := too_large(shape.smem_bytes, arch):
        return too_much
    built = (tuned_head_dim(problem, config), shape.warpgroups, int(shape.q_in_registers))
    most = SPILLS.most(problem, *built, unlike_alone=True)
    beside = asked_defines(problem) - {"CAUSAL"}
    # Three panels of K beside features: ptxas spilled 16 bytes of 48 keys at head dims 192 and 128, packed and capped.
    of_keys = shape.warpgroups == 3 and shape.head_dim > max(shape.value_dim, 128)
    unlike = shape.value_dim != shape.head_dim
    held = shape.q_in_registers and (unlike or lead_defines(problem))
    if held or (beside and (of_keys or is_between(problem, shape.head_dim))):
        most -= BETWEEN
    if shape.tile_keys > most:
        return SPILLS.said(problem, most, *built, unlike_alone=True)
    if shape.tile_keys < min(64, most) and not too_large(_wider(problem, shape).smem_bytes, arch):
        return f"synchronises its warpgroups every {shape.tile_keys} keys, where {min(64, most)} fit registers"
    return None


def _why_not_worth_it(problem: AttentionProblem, config: Config) -> str | None:
    shape, (few, many) = shape_of(problem, config), HELD_KEYS
    held = shape.q_in_registers
    if shape.tile_keys == WIDE or (shape.tile_keys > WIDE and (held or shape.head_dim <= WIDE_DIM)):
        return f"loses to others with {WIDE} keys, and up to head dim {WIDE_DIM} or with Q in registers with more"
    if held and shape.head_dim > HELD_DIM and few < shape.tile_keys < many:
        return f"loses to Q in shared memory above head dim {HELD_DIM} where tiles have between {few} and {many} keys"
    return None


def is_between(problem: AttentionProblem, held_dim: int) -> bool:
    """Whether builds of the head dim differ from those on file: rows that begin inside of sectors take addresses too.

    At 120 three warpgroups spilled with a window, softcap, sinks and 80 keys, which do not at 128.
    """
    return held_dim not in HEAD_DIMS or bool(lead_defines(problem))


def _wider(problem: AttentionProblem, shape: Shape) -> Shape:
    keys = shape.tile_keys + 16
    return _of_keys(shape, keys, ahead_row(problem, keys))


@cache
def _of_keys(shape: Shape, tile_keys: int, ahead: int) -> Shape:
    return replace(shape, tile_keys=tile_keys, ahead_row=ahead)


def tile(problem: AttentionProblem, config: Config) -> Tile:
    """Every warpgroup reads K and V from shared memory, and its rows of Q unless it keeps them."""
    shape = shape_of(problem, config)
    rows, columns, both = shape.tile_rows, shape.tile_keys, shape.head_dim + shape.value_dim
    kv_bytes, of_one = 2 * columns * both, readers(problem, rows, shape.group)
    operand_bytes = shape.warpgroups * kv_bytes + (0 if shape.q_in_registers else 2 * rows * shape.head_dim)
    return Tile(
        rows=rows,
        columns=columns,
        # A warpgroup passes over tiles of keys that causality hides from it, but those that share K and V then wait for
        # the one with the most: on an H100 three of them lose to two where sequences are short.
        row_step=rows,
        column_step=columns,
        demands=(
            Demand("products on wgmma", "tile", 2 * rows * columns * both, "wgmma_bf16_burst_flops_per_s"),
            Demand("exponentials", "tile", rows * columns, "mufu_ex2_per_clk_sm"),
            Demand("operands from shared memory", "tile", operand_bytes, "smem_bandwidth_bytes_per_clk_sm"),
            Demand("K and V from L2", "tile", kv_bytes, "l2_bandwidth_bytes_per_s"),
            Demand("K and V from DRAM", "tile", kv_bytes / of_one, "dram_bandwidth_bytes_per_s"),
            # Products of a step are taken in turns, and the first of a turn starts behind the last of the one before.
            Demand("turns", "turns", 2, "wgmma_n128_bf16_latency_cycles"),
        ),
        edge=(Demand("Q and out", "edge", 2 * rows * both, "dram_bandwidth_bytes_per_s"),),
        heads=shape.group,
    )


def warpgroups(problem: AttentionProblem, config: Config) -> WarpgroupTile:
    """The same tile, as warpgroups in lockstep: those that have rows."""
    found, group = _in_lockstep(of_any_length(problem), config), packed(problem, config["warpgroups"])
    if dealt(problem):
        found = found._replace(sequences=problem.batch)
    if not group:
        return found
    return found._replace(warpgroups=min(found.warpgroups, -(-problem.seq_q // queries_of(group))), group=group)


@lru_cache(maxsize=4096)
def _in_lockstep(problem: AttentionProblem, config: Config) -> WarpgroupTile:
    shape, settled = shape_of(problem, config), settle(SETTLED, problem, config)
    sizes = shape.tile_keys, shape.warpgroups, shape.head_dim, shape.value_dim
    return WarpgroupTile(
        *sizes,
        shape.q_in_registers,
        mask_ahead=shape.ahead_row > 0,
        key_panel=shape.key_panel,
        value_panel=shape.value_panel,
        boxes=shape.boxes,
        share=1 if shape.shares_keys else shape.cluster,
        seeded=settled["seeded"] > 0,
        stages=shape.stages,
    )


def notes(problem: AttentionProblem) -> tuple[str, ...]:
    """What all of the family say, and of masks."""
    said = notes_of(held_head_dim)(problem)
    return said if problem.mask == "none" else (*said, MASK_COPIED)


ONE_LAUNCH = Variant(
    summary="TMA producer, wgmma consumers, softmax of one tile beside the products of another",
    owner="smscope",
    archs=("sm90a",),
    features=SERVED,
    refuses=refuses_but_value_dims(STEP),
    space=(
        ("tile_keys", (32, 48, 64, 80, 96, 112, 128, 144, 160, 176)),
        ("warpgroups", (2, 3)),
        ("stages", (RING, 3, MOST_STAGES)),
        ("q_in_registers", (0, 1)),
    ),
    settled=SETTLED,
    illegal=illegal,
    lasting=Lasting(of_any_length, _why_not_of_any_length, _why_not_of_lengths),
    tile=tile,
    residents=warpgroups,
    builds=lambda problem, config: (build_of(problem, config),),
    signature=("HGMMA", "UTMALDG", "SYNCS", "USETMAXREG"),
    pads=held_head_dim,
    rank=-1,
    notes=notes,
)
VARIANT = in_halves(ONE_LAUNCH)
