"""Mistakes planted in how tiles are dealt to sequences of very unlike lengths: each is found, in every mode.

Which tile a number stands for is one text for all kernels (common/work.cuh); the sm80 one runs it here.
"""

from functools import cache

import pytest

from microbench.emulator import MODES, Mode
from tests.emulated import forward_sm90a
from tests.emulated.forward_case import ForwardCase
from tests.emulated.forward_launch import Kernel
from tests.emulated.forward_planted import Bug, outcome, planted
from tests.emulated.forward_sm80 import PATH, config_of, run

# Empty ones, one whose last tile is cut short, and one that begins within a tile of the one before.
LENGTHS = ((0, 4), (3, 2), (300, 150), (5, 0), (0, 0), (128, 64), (7, 9), (40, 30))
CASE = ForwardCase(heads_q=3, heads_kv=1, lengths=LENGTHS, right=0, spare=9)
SEARCH, DIVIDED = "int sequence_of(", "ptx::vec4 divided("
BUGS = {
    "a tile belongs to the sequence before its own": Bug(
        "work.cuh", SEARCH, "first_tile(launch, middle) <= row_tile", "first_tile(launch, middle) < row_tile"
    ),
    "the last sequence is never found": Bug("work.cuh", SEARCH, "beyond - found > 1", "beyond - found > 2"),
    "the search goes up alone": Bug("work.cuh", SEARCH, "found = middle;", "found = middle + 1;"),
    "no tile more for each sequence": Bug(
        "work.cuh",
        "int first_tile(",
        "return sequence + launch.query_starts[sequence] / kTileRows;",
        "return launch.query_starts[sequence] / kTileRows;",
    ),
    "rows count from the head's first tile": Bug(
        "work.cuh", DIVIDED, "row_tile < first ? launch.row_tiles : row_tile - first", "row_tile"
    ),
    "heads are those of every sequence": Bug("work.cuh", DIVIDED, "(kDealt ? 1 : launch.batch)", "launch.batch"),
    "one head for all": Bug("work.cuh", DIVIDED, "static_cast<unsigned>(pair)", "0"),
    "tiles are counted as if they held half their rows": Bug(
        "work.cuh",
        "int first_tile(",
        "return sequence + launch.query_starts[sequence] / kTileRows;",
        "return sequence + 2 * launch.query_starts[sequence] / kTileRows;",
    ),
}


@cache
def kernel() -> Kernel:
    """All mistakes in one build."""
    dealt = Kernel(PATH, config_of(32, 32), CASE.problem, (("DEALT", 1),))
    return planted(dealt, "forward_sm80.cu", tuple(BUGS.values()))


@pytest.mark.parametrize("mode", MODES)
def test_without_a_mistake_every_row_of_every_sequence_is_right(emulator: None, mode: Mode) -> None:
    assert not outcome(run, kernel(), mode, CASE, 0)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("bug", BUGS)
def test_a_planted_mistake_is_found(emulator: None, bug: str, mode: Mode) -> None:
    assert outcome(run, kernel(), mode, CASE, 1 + list(BUGS).index(bug))


@pytest.mark.parametrize("mode", MODES)
def test_tiles_that_blocks_take_off_a_counter_are_found_alike(emulator: None, mode: Mode) -> None:
    dealt = Kernel(forward_sm90a.PATH, forward_sm90a.config_of(64), CASE.problem, (("DEALT", 1),))
    built = planted(dealt, "forward_sm90a.cu", (BUGS["the search goes up alone"],))
    assert not outcome(forward_sm90a.run, built, mode, CASE, 0)
    assert outcome(forward_sm90a.run, built, mode, CASE, 1)
