"""Pairs of blocks that share K and V in the Hopper forward: right everywhere, and planted mistakes are found."""

import re
from dataclasses import replace
from functools import cache

import pytest

from attention.variant import Config
from microbench.emulator import MODES, Mode
from tests.emulated.forward_case import ForwardCase
from tests.emulated.forward_launch import Kernel
from tests.emulated.forward_planted import Bug, outcome, planted, wrong_of
from tests.emulated.forward_sm90a import PATH, config_of, in_pairs_on_keys, run, without_turns

# Three tiles of rows, so that the last pair's second block has no rows, and four of keys.
LONG = ForwardCase(heads_q=4, heads_kv=2, seq_q=300, seq_kv=250)


def pair(warpgroups: int = 2, tile_keys: int = 64, q_in_registers: int = 0) -> Config:
    """A configuration whose blocks come in pairs."""
    return in_pairs_on_keys(config_of(tile_keys, warpgroups, q_in_registers=q_in_registers))


CASES = {
    "full": (LONG, pair()),
    "causal": (replace(LONG, right=0), pair()),
    "causal, of two sequences": (replace(LONG, right=0, batch=2), pair()),
    "causal from the bottom right": (replace(LONG, right=0, aligned="bottom_right"), pair()),
    "the first block's rows see nothing": (replace(LONG, right=-140), pair()),
    "a pair's rows see nothing": (replace(LONG, right=-290), pair()),
    "three warpgroups": (replace(LONG, seq_q=400, right=0), pair(3)),
    "Q in registers": (replace(LONG, right=0), pair(q_in_registers=1)),
    "float16": (replace(LONG, dtype="float16"), pair()),
    "the second block has no rows": (replace(LONG, heads_kv=4, seq_q=20), pair()),
    "one query and one key": (replace(LONG, heads_kv=4, seq_q=1, seq_kv=1), pair()),
    "K given back first": (replace(LONG, head_dim=128, right=0), pair(tile_keys=80)),
    "head dim 256": (replace(LONG, head_dim=256, heads_q=2, heads_kv=1, right=0), pair(tile_keys=80)),
    "maxima that grow": (replace(LONG, right=0, spread=12.0), pair()),
}
SHARED, BLOCK, PRODUCE, WORK, SOFTMAX = "shared_keys.cuh", "block.cuh", "produce.cuh", "work.cuh", "row_softmax.cuh"
KERNEL = "forward_sm90a.cu"
RACE, STUCK = "race: ", "deadlock: "
EMPTY = "4 * kWarpgroups * kReaders"
BUGS = {
    "both blocks fetch the upper half": Bug(SHARED, "void load_half(", "ptx::cluster_rank() * kHalf", "0"),
    "the lower half lands where the upper one does": Bug(SHARED, "void load_half(", "kKeys + begin", "kKeys"),
    "the half of another tile is fetched": Bug(SHARED, "void load_half(", "row + begin", "row + kKeys + begin"),
    "what is fetched lands here alone": Bug(
        SHARED, "void load_half(", "kBothBlocks", "(1u << ptx::cluster_rank())", says=STUCK
    ),
    "nobody tells the other block that a stage was read": Bug(
        SHARED, "void tell_other(", "ptx::mbarrier_arrive_remote(ptx::map_shared(empty, other_block()));", says=STUCK
    ),
    "a stage is overwritten that the other block has not read": Bug(
        SHARED, "void tell_other(", "other_block()", "(other_block() ^ 1)", says=RACE
    ),
    "a stage of K waits for this block alone": Bug(
        BLOCK, "at.k_empty + 8 * stage", EMPTY, "4 * kWarpgroups", says=f"{RACE}|{STUCK}|more arrivals|more bytes"
    ),
    "a stage of V waits for this block alone": Bug(
        BLOCK, "at.v_empty + 8 * stage", EMPTY, "4 * kWarpgroups", says=f"{RACE}|{STUCK}|more arrivals|more bytes"
    ),
    "K is given back to this block alone": Bug(SOFTMAX, "void give_back(", "tell_other(bar);", says=STUCK),
    "both blocks take the same rows": Bug(
        PRODUCE, "takes.told(launch, next)", "ptx::cluster_rank() * kTileRows", "0", says=RACE
    ),
    "no more tiles becomes a tile": Bug(
        PRODUCE, "takes.told(launch, next)", "kKeysOfTwo && tile_at.x != kNoTile", "kKeysOfTwo", says=STUCK
    ),
    "each block goes over its own rows' keys": Bug(
        WORK, "const int row = kRowsOfCluster", "work.row / kRowsOfCluster * kRowsOfCluster", "work.row"
    ),
    "both blocks take tiles": Bug(
        "pairs.cuh", "bool takes_tiles()", "ptx::cluster_rank() == kTaker", "true", says=f"{STUCK}|{RACE}|atomic"
    ),
    "blocks begin before the other one's barriers are there": Bug(
        BLOCK, "ptx::fence_mbarrier_init();", "meet();", "__syncthreads();", says=f"{RACE}.*mbarrier.init"
    ),
    "a block ends before the other one": Bug("pairs.cuh", "void part_ways()", "ptx::cluster_sync();", says="ended: "),
}


@cache
def armed() -> Kernel:
    """All mistakes in one build, whose warpgroups take no turns: a barrier would order what a warp has to."""
    case, config = CASES["causal"]
    return planted(Kernel(PATH, without_turns(config), case.problem), KERNEL, tuple(BUGS.values()))


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", CASES)
def test_every_row_is_right(emulator: None, name: str, mode: Mode) -> None:
    case, config = CASES[name]
    assert not wrong_of(run, Kernel(PATH, config, case.problem), mode, case, blocks=4)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("mistake", BUGS)
def test_a_planted_mistake_is_found(emulator: None, mistake: str, mode: Mode) -> None:
    said = outcome(run, armed(), mode, CASES["causal"][0], 1 + list(BUGS).index(mistake), blocks=4)
    assert said and re.search(BUGS[mistake].says, said)
