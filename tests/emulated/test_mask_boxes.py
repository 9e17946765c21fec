"""Mistakes planted in how a block of the Hopper forward brings a mask by TMA for itself: each is found."""

import re
from dataclasses import replace
from functools import cache

import pytest

from microbench.emulator import MODES, Mode
from tests.emulated.forward_case import ForwardCase
from tests.emulated.forward_launch import Kernel
from tests.emulated.forward_planted import Bug, outcome, planted
from tests.emulated.forward_sm90a import PATH, config_of, in_blocks_of, run, without_turns

FILE, RACE, STUCK = "mask_rows.cuh", "race: ", "deadlock: "
FLOATS = ForwardCase(batch=2, seq_q=90, mask="bias")
# A mask's numbers are read beside the scores, or held while these are multiplied.
CASES = {
    "floats": FLOATS,
    "bytes": replace(FLOATS, mask="full"),
    "floats held": replace(FLOATS, head_dim=128),
    "bytes held": replace(FLOATS, mask="full", head_dim=256),
}
FETCH = "void fetch("
OVERWRITTEN = "rows that are being read are overwritten"
BUGS = {
    "boxes are not waited for": Bug(FILE, "void wait(", "ptx::mbarrier_wait(full(at), turn.parity());", says=RACE),
    "boxes are waited for by the first one's phase": Bug(
        FILE, "void leave(", "turn.advance();", says=f"{RACE}|{STUCK}"
    ),
    OVERWRITTEN: Bug(FILE, FETCH, "__syncwarp();", says=RACE),
    "every warp has the same room": Bug(FILE, "unsigned rows(", "warp()", "0", says=RACE),
    "every warp has the first one's rows": Bug(FILE, FETCH, "work.row + warp() * kWarpRows", "work.row"),
    "every head has the first one's rows": Bug(FILE, FETCH, "launch.mask_head ? work.head : 0", "0"),
    "every sequence has the first one's rows": Bug(FILE, FETCH, "launch.mask_batch ? work.batch : 0", "0"),
    "fewer bytes are expected": Bug(FILE, FETCH, "kWarpRows * kAheadRow", "16", says=""),
    "more bytes are expected": Bug(FILE, FETCH, "kWarpRows * kAheadRow", "2 * kWarpRows * kAheadRow", says=STUCK),
    "barriers expect another arrival": Bug("block.cuh", "at.mask_full + 8 * warp, ", "1", "2", says=STUCK),
    "the tile that was read comes again": Bug(
        *("consume.cuh", "adjust<Masked>(work, row, tile);", "tile - 1", "tile"),
        also=(Bug("row_softmax.cuh", "void hold_mask(", "tile - 1", "tile"),),
    ),
    "no tile is brought behind the first": Bug(
        "consume.cuh", "bool run(", "if (tile > least) fetch<true>(work, tile - 1);", says=STUCK
    ),
}


@cache
def kernel(kind: str) -> Kernel:
    """All mistakes in one build, whose warpgroups take no turns: a barrier would order what a warp has to."""
    made = Kernel(PATH, in_blocks_of(1, without_turns(config_of(64))), CASES[kind].problem)
    return planted(made, "forward_sm90a.cu", tuple(BUGS.values()))


def found(kind: str, mode: Mode, number: int) -> str:
    return outcome(run, kernel(kind), mode, CASES[kind], number, blocks=1)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("kind", CASES)
def test_without_a_mistake_every_row_is_right(emulator: None, kind: str, mode: Mode) -> None:
    assert not found(kind, mode, 0)


# Lanes that read by ldmatrix read together.
PLANTED = [(kind, name) for kind in CASES for name in BUGS if name != OVERWRITTEN or kind.startswith("bytes")]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(("kind", "name"), PLANTED)
def test_a_planted_mistake_is_found(emulator: None, kind: str, name: str, mode: Mode) -> None:
    said = found(kind, mode, 1 + list(BUGS).index(name))
    assert said and re.search(BUGS[name].says, said)
