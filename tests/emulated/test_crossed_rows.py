"""Tiles of rows that cross one another in the Hopper forward: right everywhere, and planted mistakes are found.

The first scores of a tile of rows are multiplied beside the last p * V of the one before, where rings are longer than
two tiles of keys.
"""

import re
from dataclasses import replace
from functools import cache

import pytest

from attention.variant import Config
from microbench.emulator import MODES, Mode
from tests.emulated.forward_case import ForwardCase
from tests.emulated.forward_launch import Kernel
from tests.emulated.forward_planted import Bug, outcome, planted, wrong_of
from tests.emulated.forward_sm90a import PATH, config_of, run, without_turns

SHORT = ForwardCase(batch=2, heads_q=4, heads_kv=2, seq_q=200, seq_kv=150)


def crossed(warpgroups: int = 2, stages: int = 4) -> Config:
    """A configuration whose rows cross."""
    return config_of(64, warpgroups, stages=stages, q_in_registers=1)


CASES = {
    "full": (SHORT, crossed()),
    "a ring of three": (SHORT, crossed(stages=3)),
    "float16": (replace(SHORT, dtype="float16", head_dim=32), crossed()),
    "one tile of keys": (replace(SHORT, seq_kv=40), crossed()),
    "three warpgroups": (replace(SHORT, seq_q=390), crossed(3)),
    "causal": (replace(SHORT, right=0), crossed()),
    "causal, more queries than keys": (replace(SHORT, right=0, aligned="bottom_right", seq_q=300), crossed()),
    "causal, three warpgroups": (replace(SHORT, right=0, seq_q=390, seq_kv=390), crossed(3)),
    "packed": (ForwardCase(heads_q=2, heads_kv=1, lengths=((130, 90), (0, 20), (70, 0), (200, 200))), crossed()),
    "packed, causal": (ForwardCase(heads_q=2, heads_kv=1, lengths=((130, 90), (64, 200)), right=0), crossed()),
    "huge scores": (replace(SHORT, scaled=1.0, spread=2.0**30), crossed()),
}
CROSS = "int cross("
BUGS = {
    "K is taken from V's stage": Bug("consume.cuh", CROSS, "v.count + 1", "v.count", says="deadlock: |race: "),
    "the last p * V is left out": Bug("consume.cuh", CROSS, "multiply_values(accumulate);", says="^out: |race: "),
    "the last V is not waited for": Bug(
        "consume.cuh", CROSS, "ptx::mbarrier_wait(at.v_full + 8 * v.stage(), v.parity());", says="race: "
    ),
    "scores are not waited for": Bug("consume.cuh", CROSS, "ptx::wgmma_wait<1>();", says=""),
    "outputs are stored before they are whole": Bug("consume.cuh", CROSS, "end_values();", says=""),
    "outputs are divided by the next rows' sums": Bug(
        "consume.cuh", CROSS, "store(before, row_before, whole);", "store(before, row_before, state);"
    ),
    "the next rows are the same ones": Bug(
        "take_rows.cuh", "void take_rows_crossed()", "first_row(following)", "first_row(work)", says=""
    ),
    "K is not released": Bug("consume.cuh", CROSS, "give_back(at.k_empty + 8 * k.stage());", says="deadlock: "),
    "keys past the end are not hidden": Bug(
        "consume.cuh", CROSS, "adjust<true>(work, row, tile);", "adjust<false>(work, row, tile);"
    ),
}


@cache
def mistaken() -> Kernel:
    """All mistakes in one build, whose warpgroups take no turns: a barrier would order what a warp has to."""
    case, config = CASES["full"]
    return planted(Kernel(PATH, without_turns(config), case.problem), "forward_sm90a.cu", tuple(BUGS.values()))


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("blocks", [1, 3])
def test_every_row_is_right(emulator: None, name: str, blocks: int, mode: Mode) -> None:
    case, config = CASES[name]
    assert not wrong_of(run, Kernel(PATH, config, case.problem), mode, case, blocks=blocks)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("mistake", BUGS)
def test_a_planted_mistake_is_found(emulator: None, mistake: str, mode: Mode) -> None:
    said = outcome(run, mistaken(), mode, CASES["full"][0], 1 + list(BUGS).index(mistake), blocks=1)
    assert said and re.search(BUGS[mistake].says, said)
