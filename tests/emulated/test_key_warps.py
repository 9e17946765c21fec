"""Warps that share rows, each with its own keys of every tile: right in every mode, and mistakes are found."""

import re
from dataclasses import replace
from functools import cache

import pytest

from attention.problem import AttentionProblem
from microbench.emulator import MODES, Mode
from tests.emulated.forward_case import ForwardCase
from tests.emulated.forward_launch import Kernel
from tests.emulated.forward_planted import Bug, outcome, planted
from tests.emulated.forward_split_keys import PATH, config_of, run
from tests.emulated.forward_tests import Forward

# As many as share rows, the keys of a tile and how many tiles there are: four of one panel; two of two panels, and two
# slices of each in a tile; four with a third tile of as many keys as otherwise have two.
WARPS = {"four": (4, 64, 3), "two": (2, 64, 3), "four, three large tiles": (4, 128, 3)}
EVERY = ForwardCase(heads_q=6, heads_kv=2, seq_q=512, seq_kv=512, left=0, right=0, sinks=True)
SHARED, PACKED = EVERY.problem, replace(EVERY, lengths=((512, 512),), softcap=1.0).problem
ALONE = replace(EVERY, mask="full", alibi="heads").problem

# Five queries of three heads: fewer rows than a panel has, and some tiles of keys that a warp sees nothing of.
SOME = ForwardCase(batch=2, heads_q=6, heads_kv=2, seq_q=5, seq_kv=331)
SEQUENCES = ((5, 100), (1, 333), (0, 5), (4, 0), (9, 64), (2, 1))
CASES = {
    "full": SOME,
    "one query": replace(SOME, heads_q=2, seq_q=1),
    "one key": replace(SOME, seq_kv=1),
    "more rows than a tile has": replace(SOME, seq_q=23),
    "causal from the bottom right": replace(SOME, right=0, aligned="bottom_right"),
    "causal within the first tile": replace(SOME, seq_kv=7, right=0),
    "rows that see nothing": replace(SOME, right=-3),
    "a window": replace(SOME, left=-40, right=20, aligned="bottom_right"),
    "(B, S, H, D) in memory": replace(SOME, memory="bshd"),
    "sinks": replace(SOME, sinks=True),
    "maxima that grow": replace(SOME, spread=12.0),
    "maxima that grow past 2^128": replace(SOME, spread=100.0),
    "packed, causal and sinks": ForwardCase(
        heads_q=6, heads_kv=2, lengths=SEQUENCES, softcap=30.0, right=0, aligned="bottom_right", sinks=True
    ),
    "a mask and ALiBi": replace(SOME, mask="full", alibi="heads"),
}


def kernel_of(warps: str, problem: AttentionProblem) -> Kernel:
    key_warps, tile_keys, key_stages = WARPS[warps]
    return Kernel(PATH, config_of(tile_keys, key_warps=key_warps, key_stages=key_stages), problem)


@cache
def forward_of(warps: str, masked: bool) -> Forward:
    return Forward(run, *(kernel_of(warps, each) for each in (ALONE if masked else SHARED, PACKED)))


def why_wrong(mode: Mode, name: str, warps: str, key_splits: int) -> str:
    return forward_of(warps, bool(CASES[name].mask)).why_wrong(mode, CASES[name], key_splits=key_splits)


@pytest.mark.parametrize("warps", WARPS)
@pytest.mark.parametrize("name", CASES)
def test_warps_that_share_rows_are_right(name: str, warps: str) -> None:
    for key_splits in (1, 3):
        assert not why_wrong("random", name, warps, key_splits)


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("warps", WARPS)
@pytest.mark.parametrize("name", CASES)
def test_they_are_right_in_every_mode(name: str, warps: str) -> None:
    for mode in MODES:
        for key_splits in (1, 2, 16):
            assert not why_wrong(mode, name, warps, key_splits)


CASE = replace(SOME, softcap=50.0, right=0, left=-250, aligned="bottom_right", spread=12.0)
EVEN = replace(CASE, seq_kv=320)  # whose last keys end a slice
UNSEEN = replace(CASE, left=None, seq_q=40, seq_kv=30)  # the first rows see no key
ANY = "race|^out|^lse|out of bounds"
BUGS = {
    "warps with queries are idle": Bug("key_loop.cuh", "bool run(", "first >= work.queries", "first >= 0"),
    "a tile is not waited for": Bug(
        "key_loop.cuh", "bool run(", "ptx::cp_async_wait<kStages - 2>();", "ptx::cp_async_wait<kStages - 1>();", ANY
    ),
    "a tile that another warp reads is written": Bug("key_loop.cuh", "bool run(", "__syncthreads();", says="race"),
    "a tile comes into the stage of its successor": Bug(
        "key_loop.cuh", "void load_tile(", "number % kStages", "(number + 1) % kStages", ANY
    ),
    "the next tile is the one that there is": Bug(
        "key_loop.cuh", "void load_tile(", "k_from -= kKeys * launch.k_row;", says=ANY
    ),
    "the same of V": Bug("key_loop.cuh", "void load_tile(", "v_from -= kKeys * launch.v_row;", says=ANY),
    "tiles that there are not are read": Bug("key_loop.cuh", "void load_tile(", "tile >= work.first", "true", ANY),
    "every warp has the first one's keys": Bug("products.cuh", "int warp_key(", "key_warp() * kSlices", "0", ANY),
    "no key is hidden": Bug("key_loop.cuh", "void take(", "is_masked(work, key)", "false"),
    "keys are hidden by the last row": Bug(
        "key_loop.cuh", "bool is_masked(", "first + work.right + 1", "last + work.right + 1", ANY, EVEN
    ),
    "keys behind a window are seen": Bug("key_loop.cuh", "bool is_masked(", "key < last + work.left", "false"),
    "keys are those of the tile above": Bug(
        "key_loop.cuh", "void take(", "(work.last - 1 - number)", "(work.last - number)", ANY
    ),
    "rows are one key ahead": Bug("key_loop.cuh", "void hide(", "lane() % 4 * 2", "lane() % 4 * 2 + 1"),
    "Q is another panel's": Bug("products.cuh", "int warp_row(", "warp % kRowWarps", "0", ANY),
    "what other warps have is left out": Bug(
        "key_warps.cuh", "void add_up(", "sum += weight * part[warp];", "sum = weight * part[warp];", "^out|^lse"
    ),
    "it is read before it is there": Bug("key_warps.cuh", "void leave_key_warps(", "__syncthreads();", says="race"),
    "two warps leave it in one place": Bug("key_warps.cuh", "unsigned row_of(", "key_warp * kTileRows", "0", ANY),
    "the second rows are the first ones": Bug(
        "key_warps.cuh", "void leave(", "rows.warp_row() + 8 * h + lane / 4", "rows.warp_row() + lane / 4", ANY
    ),
    "two lanes leave the same columns": Bug("key_warps.cuh", "void leave(", "8 * (lane % 4)", "8 * (lane % 2)", ANY),
    "a lane's sum is its row's": Bug(
        "key_warps.cuh", "void leave(", "RowPair<kValueDim / 2>::sum(state.sum[h])", "state.sum[h]", "^out|^lse"
    ),
    "parts are not rescaled": Bug(
        "key_warps.cuh", "void add_up(", "ptx::ex2((offset[warp] - base) * unit)", "1.f", "^out|^lse"
    ),
    "rows that saw no key are NaN": Bug(
        "key_warps.cuh", "void add_up(", "most == minus_infinity() ? 0.f : most", "most", "^out|^lse", UNSEEN
    ),
    "a quotient is twice as large": Bug("divide.cuh", "Divided divide(", "number >> (31 - __clz(by))", "number", ANY),
    "a part ends where the next one does": Bug(
        "place.cuh", "Work part(", "begin_of(number + 1)", "begin_of(number + 2)", ANY
    ),
    "all parts begin with the first key": Bug("place.cuh", "Work part(", "mine.first = begin_of(number);", says=ANY),
    "one thread's columns are all that are left": Bug("parts.cuh", "void leave_spans(", "to + 4 * at", "to", ANY),
}


@cache
def with_bugs(warps: str, case: ForwardCase) -> Kernel:
    return planted(kernel_of(warps, case.problem), "forward_sm80.cu", BUGS.values())


def found(case: ForwardCase, number: int) -> list[str]:
    """By warps and mode, of keys in one piece and in three."""
    return [
        outcome(run, with_bugs(warps, case), mode, case, number, section=1, key_splits=n)
        for warps in ("four", "two")
        for n in (1, 3)
        for mode in MODES
    ]


@pytest.mark.parametrize("case", [CASE, EVEN, UNSEEN], ids=["windowed", "even", "unseen"])
def test_nothing_is_found_where_no_mistake_is_armed(case: ForwardCase) -> None:
    assert not any(found(case, 0))


@pytest.mark.parametrize("name", BUGS)
def test_a_planted_mistake_is_found_in_some_mode(name: str) -> None:
    said = found(BUGS[name].case or CASE, 1 + list(BUGS).index(name))
    assert any(re.search(BUGS[name].says, each) for each in said), said
