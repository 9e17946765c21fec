"""Heads of a group that share a warpgroup's rows, by both kernels of Hopper: right, and mistakes are found."""

import re
from collections.abc import Callable
from dataclasses import replace
from functools import cache

import pytest

from attention.variant import Config
from microbench.emulator import MODES, Mode
from tests.emulated import forward_sm90a as whole
from tests.emulated import forward_sm90a_split as split
from tests.emulated.forward_case import ForwardCase, Outputs
from tests.emulated.forward_launch import Kernel
from tests.emulated.forward_planted import Bug, outcome, planted
from tests.emulated.forward_tests import Forward

# Two tiles of two warpgroups each, the last with rows for one of them.
SOME = ForwardCase(batch=2, heads_q=8, heads_kv=2, seq_q=40, seq_kv=203, right=0, aligned="bottom_right")
FEW = replace(SOME, seq_q=6)
FIVE = replace(SOME, heads_q=10, seq_q=45)  # 12 queries in 60 rows
SEQUENCES = ((10, 100), (1, 133), (0, 5), (5, 0), (14, 64), (6, 150))
LENGTHS = ForwardCase(heads_q=6, heads_kv=2, lengths=SEQUENCES, right=0, aligned="bottom_right", sinks=True)
USED = replace(SOME, seq_q=20, ranges=((10, 180, 20), (20, 90, 0)))
SINKS = ForwardCase(heads_q=5, heads_kv=1, seq_q=30, seq_kv=150, right=0, aligned="bottom_right", sinks=True)
CASES = {
    "full": replace(SOME, right=None),
    "causal": SOME,
    "queries for one warpgroup": FEW,
    "one query": replace(SOME, seq_q=1),
    "a group that does not divide a warpgroup's rows": FIVE,
    "sinks": SINKS,
    "a window": replace(SOME, left=-40),
    "packed sequences": LENGTHS,
    "ranges of rows": USED,
    "ranges without queries or keys": replace(SOME, seq_q=20, ranges=((0, 180, 0), (20, 0, 0))),
    "rows that see nothing": replace(SOME, right=-25, aligned="top_left"),
    "(B, S, H, D) in memory": replace(SOME, memory="bshd"),
    "maxima that grow past 2^128": replace(SOME, spread=100.0),
}
WIDE = replace(FEW, heads_q=4, heads_kv=1, head_dim=128, dtype="float16")
Run = Callable[..., Outputs]
PARTS = {whole.PATH: {}, split.PATH: {"key_splits": 3}}
RUNS: dict[str, Run] = {whole.PATH: whole.run, split.PATH: split.run}
CONFIGS: dict[str, Callable[..., Config]] = {whole.PATH: whole.config_of, split.PATH: split.config_of}
each_kernel = pytest.mark.parametrize("path", RUNS)


def kernel_of(path: str, case: ForwardCase, tile_keys: int = 32, warpgroups: int = 2) -> Kernel:
    found = Kernel(path, CONFIGS[path](tile_keys, warpgroups), case.problem)
    assert found.defines["PACK_GQA"] == case.heads_q // case.heads_kv
    return found


def why_wrong(path: str, mode: Mode, case: ForwardCase, kernel: Kernel | None = None) -> str:
    kernel = kernel or kernel_of(path, case)
    return Forward(RUNS[path], kernel, kernel).why_wrong(mode, case, kernel, **PARTS[path])


@each_kernel
@pytest.mark.parametrize("name", CASES)
def test_rows_of_a_group_are_right_in_every_mode(path: str, name: str) -> None:
    assert not any(why_wrong(path, mode, CASES[name]) for mode in MODES)


@each_kernel
@pytest.mark.parametrize("mode", MODES)
def test_three_warpgroups_and_wide_rows_are_right(path: str, mode: Mode) -> None:
    assert not why_wrong(path, mode, FIVE, kernel_of(path, FIVE, warpgroups=3))
    assert not why_wrong(path, mode, WIDE, kernel_of(path, WIDE, 64))


def test_a_softcap_is_right_in_every_mode() -> None:
    case = replace(SOME, softcap=20.0)
    assert not any(why_wrong(whole.PATH, mode, case) for mode in MODES)


ANY = "race|^out|^lse|left|wrote|out of bounds|livelock|deadlock"
SPAN = "row / kPackSpan * (kPackSpan / group) + row % kPackSpan / group"
WINDOWED = replace(FIVE, left=-40)
BUGS = {
    "rows are queries one after another": Bug("work.cuh", "int query_of(", SPAN, "row / group", ANY, FIVE),
    "heads begin anew with a query's rows": Bug(
        "work.cuh", "int head_of(", "row % kPackSpan % group", "row % group", ANY, FIVE
    ),
    "rows behind the last whole query are somebody's": Bug(
        "packed_rows.cuh", "OfRow(const Work& tile", "!tile.has(row)", "false", ANY, FIVE
    ),
    "a box begins at its row": Bug(
        "produce.cuh", "void load_queries(", "work.query_of(row)", "row", ANY, case=WINDOWED
    ),
    "a box is as long as a warpgroup's rows": Bug(
        "produce.cuh",
        "void load_queries(",
        "kGroupRows / work.group * work.group",
        "kGroupRows",
        "deadlock|livelock",
        FIVE,
    ),
    "K and V are those of a query head": Bug(
        "work.cuh", "int kv_head_of(", "kPackGqa ? work.head : work.head / launch.heads_per_kv", "0", ANY
    ),
    "tiles seen in full begin by rows": Bug(
        "seen.cuh", "int seen_whole(", "work.query_of(row) + work.right", "row + work.right", ANY
    ),
    "the diagonal is where rows say": Bug(
        "seen.cuh", "int at_diagonal(", "last_query(work, row) + 1", "1", "race|^out|livelock|deadlock"
    ),
    "a window's tiles are seen in full by rows": Bug(
        "seen.cuh",
        "int seen_by_all(",
        "last_query(work, row) + work.left",
        "work.query_of(row) + work.left",
        ANY,
        WINDOWED,
    ),
    "a warpgroup without rows keeps K": Bug("consume.cuh", "void pass_by(", "skip();", says="livelock|deadlock"),
    "and Q": Bug("consume.cuh", "void pass_by(", "release(at.q_empty + 8 * group);", says="livelock|deadlock"),
    "every head has its group's sink": Bug(
        "packed_rows.cuh", "OfRow(const Work& tile", "work.head = tile.head_of(row);", says=ANY, case=SINKS
    ),
    "lse lies as if heads were groups": Bug(
        "packed_rows.cuh", "float* lse(", "launch.heads * work.group", "launch.heads", ANY
    ),
}


def case_of(name: str) -> ForwardCase:
    return BUGS[name].case or SOME


@cache
def with_bugs(case: ForwardCase) -> Kernel:
    return planted(kernel_of(whole.PATH, case), "forward_sm90a.cu", BUGS.values())


def found(number: int, case: ForwardCase) -> list[str]:
    return [outcome(whole.run, with_bugs(case), mode, case, number, section=1, blocks=1) for mode in MODES]


@pytest.mark.parametrize("case", dict.fromkeys(map(case_of, BUGS)), ids=lambda case: f"{case.heads_q}-{case.left}")
def test_nothing_is_found_where_no_mistake_is_armed(case: ForwardCase) -> None:
    assert not any(found(0, case))


@pytest.mark.parametrize("name", BUGS)
def test_a_planted_mistake_is_found_in_some_mode(name: str) -> None:
    said = found(1 + list(BUGS).index(name), case_of(name))
    assert any(re.search(BUGS[name].says, each) for each in said), said
