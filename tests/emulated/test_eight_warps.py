"""Tiles of 128 rows, for more than four warps hold: right in every mode, and mistakes of the second half are found.

Of 72 rows five warps have some, and the others leave shared memory alone.
"""

import re
from dataclasses import replace
from functools import cache

import pytest

from microbench.emulator import MODES
from tests.emulated.forward_case import ForwardCase
from tests.emulated.forward_launch import Kernel
from tests.emulated.forward_planted import Bug, outcome, planted
from tests.emulated.forward_split_keys import PATH, config_of, run
from tests.emulated.forward_tests import Forward, Parted, PartedTests

EVERY = ForwardCase(heads_q=8, heads_kv=1, seq_q=512, seq_kv=512, left=0, right=0, sinks=True)
SHARED, PACKED = EVERY.problem, replace(EVERY, lengths=((512, 512),), softcap=1.0).problem
ALONE = replace(EVERY, mask="full", alibi="heads").problem

# A speculative step: nine queries of eight heads.
SOME = ForwardCase(batch=2, heads_q=8, heads_kv=1, seq_q=9, seq_kv=203)
ONE = replace(SOME, heads_q=2, heads_kv=2, seq_q=70)
SEQUENCES = ((9, 100), (1, 133), (0, 5), (5, 0), (16, 64), (8, 150))
CASES = {
    "nine queries of eight heads": SOME,
    "70 queries of a head": ONE,
    "128 queries of a head": replace(ONE, seq_q=128),
    "more rows than a tile has": replace(SOME, seq_q=17),
    "causal from the bottom right": replace(SOME, right=0, aligned="bottom_right"),
    "70 queries, causal from the bottom right": replace(ONE, right=0, aligned="bottom_right"),
    "rows that see nothing": replace(SOME, right=-5),
    "a window": replace(SOME, left=-40, right=20, aligned="bottom_right"),
    "(B, S, H, D) in memory": replace(SOME, memory="bshd"),
    "sinks": replace(SOME, sinks=True),
    "maxima that grow": replace(SOME, spread=12.0),
    "maxima that grow past 2^128": replace(SOME, spread=100.0),
    "packed sequences": ForwardCase(heads_q=8, heads_kv=1, lengths=SEQUENCES, softcap=30.0),
    "packed, causal and sinks": ForwardCase(
        heads_q=8, heads_kv=1, lengths=SEQUENCES, softcap=30.0, right=0, aligned="bottom_right", sinks=True
    ),
    "a mask and ALiBi": replace(ONE, mask="full", alibi="heads"),
}
# Q on its way to registers passes through stages of 64 keys or more.
PARTED = Parted(
    CASES,
    *(
        Forward(run, *(Kernel(PATH, config_of(64, warps=8), each) for each in (featured, PACKED)))
        for featured in (SHARED, ALONE)
    ),
)


@pytest.mark.parametrize("name", CASES)
def test_parts_of_up_to_128_rows_are_right_together(name: str) -> None:
    for mode, key_splits in zip(MODES, (1, 3, 16), strict=True):
        assert not PARTED.why_wrong(mode, name, key_splits)


def test_tiles_of_128_keys_are_right_at_head_dim_128() -> None:
    case = replace(SOME, head_dim=128, seq_kv=300, right=0, aligned="bottom_right")
    kernels = (
        Kernel(PATH, config_of(128, warps=8), each.problem) for each in (case, replace(case, lengths=((9, 300),)))
    )
    forward = Forward(run, *kernels)
    for mode, key_splits in zip(MODES, (1, 2, 16), strict=True):
        assert not forward.why_wrong(mode, case, key_splits=key_splits)


class TestParts(PartedTests):
    parted = PARTED


# The last query alone sees the key that a tile of its own begins with.
CASE = ForwardCase(heads_q=8, heads_kv=1, lengths=((9, 161),), softcap=50.0, right=0, aligned="bottom_right")
ANY = "race|^out|^lse|left|wrote|out of bounds"
BUGS = {
    "Q of the second half is left out": Bug("pipeline.cuh", "void load_group(", "pass < kTileRows", "pass < 64", ANY),
    "the fifth warp's vote is the second time": Bug(
        "config.cuh", "struct Rooms", "second_time = votes + 4 * kWarps;", "second_time = votes + 16;", ANY
    ),
    "a tile sees what the first half sees": Bug(
        "work.cuh", "if constexpr (kPackGqa) {", "work.row + kTileRows - 1", "work.row + 63", ANY
    ),
    "parts lie as if they had 64 rows": Bug(
        "parts.cuh", "ptx::u64 row_of(", "block * launch.part_rows", "block * min(64, launch.part_rows)", ANY
    ),
    "warps behind the fourth are idle": Bug(
        "pipeline.cuh",
        "bool is_idle(",
        "kIdleWarps && work.query_of(work.row + warp_row()) >= work.queries",
        "threadIdx.x >= 128",
        ANY,
    ),
}


@cache
def with_bugs(warps: int) -> Kernel:
    return planted(Kernel(PATH, config_of(32, warps=warps), CASE.problem), "forward_sm80.cu", BUGS.values())


def found(warps: int, number: int) -> list[str]:
    """By mode, of keys in one piece and in many."""
    return [
        outcome(run, with_bugs(warps), mode, CASE, number, section=1, key_splits=n) for n in (1, 16) for mode in MODES
    ]


def test_nothing_is_found_where_no_mistake_is_armed() -> None:
    assert not any(found(8, 0))


@pytest.mark.parametrize("name", BUGS)
def test_a_planted_mistake_is_found_that_tiles_of_four_warps_do_not_show(name: str) -> None:
    number = 1 + list(BUGS).index(name)
    said = found(8, number)
    assert any(re.search(BUGS[name].says, each) for each in said), said
    assert not any(found(4, number))
