"""Attention on Hopper for few tiles of rows and many keys: what it serves and what a tile asks."""

from dataclasses import replace
from functools import lru_cache
from pathlib import Path

from attention.kernels.common.family import (
    STEP,
    asked_defines,
    dealt,
    held_head_dim,
    lead_defines,
    notes_of,
    of_any_length,
    refuses_but_value_dims,
    tiles_of,
)
from attention.kernels.common.halves import in_halves
from attention.kernels.common.key_splits import parts, workspace_bytes
from attention.kernels.common.spills import spills_of
from attention.kernels.sm90a.forward.split_keys.arguments import SETTLED, build_of, shape_of
from attention.kernels.sm90a.forward.warp_specialised import variant as whole
from attention.kernels.sm90a.forward.warp_specialised.arguments import tuned_head_dim
from attention.kernels.sm90a.packed import packed, queries_of
from attention.problem import AttentionProblem
from attention.tile import Tile, WarpgroupTile
from attention.variant import Config, Variant, settle
from microbench.machine.arch import Arch

SPILLS = spills_of(Path(__file__).parent)
TILE_KEYS = (64, 80, 96, 112, 128, 144, 160, 176)
EVEN = 112  # keys of a tile that parts are made of more evenly, where there is room for more
PARTS = (2, 3, 4, 5, 6, 8, 11, 16)
WARPGROUPS = (2, 3)
# Numbers of the schedule that fill the SMs: an H20 has 78, an H100 or H200 up to 132, and twice as many are two rounds.
LEAST_NUMBERS, MOST_NUMBERS = 64, 264
MOST_FEW = 32  # rows that fill no more than half of a warpgroup: sm80/forward/split_keys has tiles of 16


def refuses(problem: AttentionProblem, arch: Arch) -> str | None:
    """What any configuration would, by queries and keys alone, and what no kernel of sm90a is written for."""
    if dealt(problem):
        return "deals no tiles by each sequence's own length"
    if problem.varlen and problem.ranges:
        return "has room for ranges of rows, or for packed sequences"
    rows = problem.seq_q * max(1, packed(problem, WARPGROUPS[0]))
    if rows <= MOST_FEW:
        return f"is written for more than {MOST_FEW} rows, of queries or of a group's heads, not {rows}"
    if (tiles := min(_tiles(problem, each) for each in WARPGROUPS)) > MOST_NUMBERS // PARTS[0]:
        return f"deals the keys of up to {MOST_NUMBERS // PARTS[0]} tiles of rows to several blocks, not of {tiles}"
    if problem.seq_kv < PARTS[0] * TILE_KEYS[0]:
        return f"is written for {PARTS[0] * TILE_KEYS[0]} keys or more, not {problem.seq_kv}"
    return refuses_but_value_dims(STEP)(problem, arch)


def illegal(problem: AttentionProblem, config: Config, arch: Arch) -> str | None:
    """As of many rows, of the tile with the most keys that fit or one that parts are made of evenly."""
    wanted, most = config["key_splits"], _most_parts(problem.seq_kv, config["tile_keys"])
    numbers = _tiles(problem, config["warpgroups"]) * wanted
    if wanted > most and numbers >= LEAST_NUMBERS:
        return f"deals {problem.seq_kv} keys to {wanted} blocks, which are tiles for {most}"
    if numbers > MOST_NUMBERS or (numbers < LEAST_NUMBERS and wanted < most):
        return f"deals {numbers} parts of tiles to the SMs, which {LEAST_NUMBERS} to {MOST_NUMBERS} fill"
    held = 2 * queries_of(max(1, packed(problem, config["warpgroups"])))
    if config["warpgroups"] == 3 and problem.seq_q <= held:
        return f"two warpgroups already hold all {problem.seq_q} queries"
    return _why_not(of_any_length(problem), config["tile_keys"], config["warpgroups"], arch)


@lru_cache(maxsize=64)  # a choice asks for each number of blocks, and for each tile of keys
def _tiles(problem: AttentionProblem, warpgroups: int) -> int:
    group = max(1, packed(problem, warpgroups))
    return tiles_of(problem, warpgroups * queries_of(group) * group, group)


@lru_cache(maxsize=64)
def _most_parts(keys: int, tile_keys: int) -> int:
    """Blocks that may share so many keys, each with a tile of them."""
    return max(each for each in PARTS if each == PARTS[0] or each <= -(-keys // tile_keys))


@lru_cache(maxsize=1024)
def _why_not(problem: AttentionProblem, tile_keys: int, warpgroups: int, arch: Arch) -> str | None:
    if why_not := _why_not_held(problem, tile_keys, warpgroups, arch):
        return why_not
    most = max(keys for keys in TILE_KEYS if not _why_not_held(problem, keys, warpgroups, arch))
    even = EVEN if warpgroups == 2 else most  # of three, 112 keys spill at head dim 64, causal, where 128 do not
    return None if tile_keys in (most, even) else f"takes tiles of {most} keys, or of {even}"


@lru_cache(maxsize=1024)
def _why_not_held(problem: AttentionProblem, tile_keys: int, warpgroups: int, arch: Arch) -> str | None:
    """By shared memory, and by registers, of which parts of keys take some more."""
    config = _as_whole(problem, tile_keys, warpgroups)
    built = tuned_head_dim(problem, config), warpgroups, 0
    most = SPILLS.most(problem, *built, unlike_alone=True)
    late = warpgroups == 3 and lead_defines(problem)  # at head dim 72 three spill beside 96 keys
    if late or (whole.is_between(problem, held_head_dim(problem.head_dim)) and asked_defines(problem) - {"CAUSAL"}):
        most -= whole.BETWEEN
    if tile_keys > most:
        return SPILLS.said(problem, most, *built, unlike_alone=True)
    return whole.unfit(problem, config, arch)


def _as_whole(problem: AttentionProblem, tile_keys: int, warpgroups: int) -> Config:
    return settle(SETTLED, problem, Config((("tile_keys", tile_keys), ("warpgroups", warpgroups))))


def tile(problem: AttentionProblem, config: Config) -> Tile:
    """That of the kernel for many rows, with blocks that share its keys."""
    found, shape = whole.tile(problem, settle(SETTLED, problem, config)), shape_of(problem, config)
    return replace(found, edge=(*found.edge, *parts(shape)), key_splits=shape.key_splits)


def warpgroups(problem: AttentionProblem, config: Config) -> WarpgroupTile:
    """The same tile, as warpgroups in lockstep, and the blocks that share its keys."""
    found = whole.warpgroups(problem, _as_whole(problem, config["tile_keys"], config["warpgroups"]))
    return found._replace(key_splits=config["key_splits"])


ONE_LAUNCH = Variant(
    summary="the kernel of many rows over a part of the keys, whose parts all blocks bring together",
    owner="smscope",
    archs=whole.VARIANT.archs,
    features=frozenset({"bottom-right causality", "variable lengths", "ranges of rows", "attention sinks"}),
    refuses=refuses,
    space=(
        ("tile_keys", TILE_KEYS),
        ("warpgroups", WARPGROUPS),
        ("key_splits", PARTS),
    ),
    settled=SETTLED,
    illegal=illegal,
    tile=tile,
    residents=warpgroups,
    builds=lambda problem, config: (build_of(problem, config),),
    workspace=lambda problem, config: workspace_bytes(problem, shape_of(problem, config)),
    signature=whole.VARIANT.signature,
    pads=held_head_dim,
    rank=-1,
    notes=notes_of(held_head_dim),
)
VARIANT = in_halves(ONE_LAUNCH)
