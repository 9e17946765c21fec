"""Pairs of blocks that share a mask's rows in the Hopper forward: right everywhere, and planted mistakes are found."""

import re
from dataclasses import replace
from functools import cache

import pytest

from attention.variant import Config
from microbench.emulator import MODES, Mode
from tests.emulated.forward_case import ForwardCase
from tests.emulated.forward_launch import Kernel
from tests.emulated.forward_planted import Bug, outcome, planted, wrong_of
from tests.emulated.forward_sm90a import PATH, config_of, in_blocks_of, run, without_turns

SHARED = ForwardCase(batch=2, heads_q=4, heads_kv=2, seq_q=200, mask="shared bias")


def pair(warpgroups: int = 2, tile_keys: int = 64) -> Config:
    """A configuration whose blocks come in pairs."""
    return in_blocks_of(2, config_of(tile_keys, warpgroups))


CASES = {
    "floats": (SHARED, pair()),
    "bytes": (replace(SHARED, mask="shared"), pair()),
    "a mask of keys": (replace(SHARED, mask="keys"), pair()),
    "a mask of its own for each head": (replace(SHARED, mask="bias"), pair()),
    "floats held": (replace(SHARED, head_dim=128), pair()),
    "three warpgroups": (replace(SHARED, seq_q=250), pair(3)),
    "causal": (replace(SHARED, right=0), pair()),
    "causal, three warpgroups": (replace(SHARED, right=0, seq_q=390, seq_kv=390, mask="shared"), pair(3)),
    "a window": (replace(SHARED, right=0, left=-50, seq_kv=260), pair()),
    "more queries than keys": (replace(SHARED, right=0, aligned="bottom_right", seq_q=300, seq_kv=40), pair()),
    "one key": (replace(SHARED, seq_kv=1), pair()),
}
PAIRS, MASK, ROWS, BLOCK = "pairs.cuh", "shared_mask.cuh", "mask_rows.cuh", "block.cuh"
KERNEL = "forward_sm90a.cu"
RACE, STUCK = "race: ", "deadlock: "
TELL, HEAR, FETCH, BRING, RELEASE = "void tell(", "int hear(", "void fetch_rows(", "void bring_masks(", "void release("
BUGS = {
    "a number is told over one that was not heard": Bug(
        PAIRS, f"{TELL}const Rooms& at", "ptx::mbarrier_wait(at.number_empty, turn.parity() ^ 1);", says=RACE
    ),
    "a number is not waited for": Bug(
        PAIRS, f"{HEAR}const Rooms& at", "ptx::mbarrier_wait(at.number_full, turn.parity());", says=RACE
    ),
    "nobody says that a number was heard": Bug(
        PAIRS, HEAR, "ptx::mbarrier_arrive_remote(ptx::map_shared(at.number_empty, kTaker));", says=STUCK
    ),
    "both blocks take tiles": Bug(PAIRS, "bool takes_tiles()", "ptx::cluster_rank() == kTaker", "true", says=STUCK),
    "both blocks put the counters back": Bug(
        "produce.cuh", "    hear();\n  }\n", "takes_tiles()", "true", says="atomic update"
    ),
    "both blocks take the same head": Bug(
        "produce.cuh", "takes.told(launch, next)", "tile_at.y += ptx::cluster_rank();", says=RACE
    ),
    "rows are overwritten that this block has not read": Bug(
        MASK, BRING, "ptx::mbarrier_wait(at.mask_empty + 8 * group, turns[group].parity() ^ 1);", says="more arrivals"
    ),
    "nobody tells the other block that rows were read": Bug(
        ROWS, RELEASE, "ptx::mbarrier_arrive_remote(ptx::map_shared(empty, other_block()));", says=STUCK
    ),
    "rows are overwritten that the other block has not read": Bug(
        ROWS, RELEASE, "other_block()", "(other_block() ^ 1)", says=RACE
    ),
    "a warp's first lane speaks for others": Bug(ROWS, RELEASE, "__syncwarp();", says=RACE),
    "both blocks fetch the upper half": Bug(MASK, FETCH, "ptx::cluster_rank() * kHalfRows", "0"),
    "what is fetched lands here alone": Bug(MASK, FETCH, "kBothBlocks", "(1u << ptx::cluster_rank())", says=STUCK),
    "every sequence has the first one's rows": Bug(MASK, FETCH, "launch.mask_batch ? work.batch : 0", "0"),
    "bytes of one half are expected": Bug(
        MASK, BRING, "kGroupRows * kAheadRow", "kHalfRows * kAheadRow", says=f"{RACE}|more bytes"
    ),
    "every warpgroup has the first one's room": Bug(
        MASK, "arrive_expect(full", "at.ahead + group * kGroupRows * kAheadRow", "at.ahead", says=RACE
    ),
    "barriers expect this block's warps alone": Bug(
        BLOCK, "at.mask_empty + 8 * group, ", "2 * 4", "4", says=f"{RACE}|{STUCK}|more arrivals"
    ),
    "blocks begin before the other one's barriers are there": Bug(
        BLOCK, "ptx::fence_mbarrier_init();", "meet();", "__syncthreads();", says=f"{RACE}.*mbarrier.init"
    ),
    "a block ends before the other one": Bug("pairs.cuh", "void part_ways()", "ptx::cluster_sync();", says="ended: "),
}

# Of a band: rows that see other tiles of keys than their block does.
OF_A_BAND = {
    "tiles above the diagonal are fetched": Bug(MASK, BRING, "tile > first", "false", says=STUCK),
    "tiles before the window are fetched": Bug(
        MASK, BRING, "tile < least_seen(work, row, first)", "false", says=f"{STUCK}|{RACE}"
    ),
    "a band's rows begin a tile too low": Bug(
        "seen.cuh", "int first_seen(", "work.last - 1", "work.last - 2", says=STUCK
    ),
}
PLANTED = {"bytes": BUGS, "a window": OF_A_BAND}


@cache
def kernel(name: str) -> Kernel:
    """All mistakes in one build, whose warpgroups take no turns: a barrier would order what a warp has to."""
    case, config = CASES[name]
    return planted(Kernel(PATH, without_turns(config), case.problem), KERNEL, tuple(PLANTED[name].values()))


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", CASES)
def test_every_row_is_right(emulator: None, name: str, mode: Mode) -> None:
    case, config = CASES[name]
    assert not wrong_of(run, Kernel(PATH, config, case.problem), mode, case, blocks=4)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(("name", "mistake"), [(name, each) for name, bugs in PLANTED.items() for each in bugs])
def test_a_planted_mistake_is_found(emulator: None, name: str, mistake: str, mode: Mode) -> None:
    (case, _), bugs = CASES[name], PLANTED[name]
    said = outcome(run, kernel(name), mode, case, 1 + list(bugs).index(mistake), blocks=4)
    assert said and re.search(bugs[mistake].says, said)
