"""Mistakes planted in the sm70 forward kernel: each is found, by the emulator's report or by the oracle."""

import re
from dataclasses import replace
from functools import cache

import pytest

from microbench.emulator import MODES, Mode
from tests.emulated.forward_case import ForwardCase
from tests.emulated.forward_launch import Kernel
from tests.emulated.forward_planted import Bug, outcome, planted
from tests.emulated.forward_sm70 import PATH, config_of, run

# Two tiles of rows, the second one cut short, and five of keys.
CASE = ForwardCase(heads_q=1, heads_kv=1, lengths=((100, 150),), softcap=50.0, right=50, spread=12.0, dtype="float16")
BEHIND = replace(CASE, lengths=((100, 140),), spare=20, right=200, spread=1.0)
EVEN = replace(CASE, spread=1.0, right=60)  # every key counts
# All in registers; all through shared memory, 32 rows a warp; and rows that two warps share.
BUILDS = (
    (CASE, config_of(32)),
    (CASE, config_of(32, warp_rows=32, p_in_registers=0, q_spans=0)),
    (replace(CASE, head_dim=128), config_of(32, warps=8, p_in_registers=0, split=2, q_spans=16)),
)
SHARED, SPLIT = 1, 2
UNORDERED = "race: (ld|st).shared .* not ordered after the (write|read)"

BUGS = {
    "keys of K are in another order": Bug(
        "quad_pair.cuh",
        "int operand_key()",
        "t() + column_pair() * 4 + upper() * 8",
        "t() + column_pair() * 8 + upper() * 4",
    ),
    "rows of Q are those of the accumulator": Bug(
        "quad_pair.cuh", "int operand_row()", "accumulator_row() + (lane & 2) * 4", "accumulator_row()", "race: write"
    ),
    "column pairs read each other's V": Bug(
        "products.cuh", "v_at(", "place.column_pair() * 16", "(place.column_pair() ^ 1) * 16"
    ),
    "halves of a warp read each other's V": Bug(
        "products.cuh", "v_at(", "place.upper() * 32", "(place.upper() ^ 1) * 32"
    ),
    "p comes from the wrong lane": Bug(
        "quad_pair.cuh",
        "Row4 row_of(",
        "__shfl_xor_sync(~0u, mine ? upper : lower, 2)",
        "__shfl_xor_sync(~0u, upper, 1)",
    ),
    "words of p change places": Bug("quad_pair.cuh", "Row4 row_of(", "mine ? got : kept", "mine ? kept : got"),
    "p of the other column pair is one's own": Bug(
        "products.cuh", "void fetch_p(", "__shfl_xor_sync(~0u, to[0].word[i], 4)", "to[0].word[i]"
    ),
    "both column pairs take keys in one order": Bug(
        "products.cuh", "vec4 load_v(", "place.column_pair() ^ four % 2", "four % 2"
    ),
    "halves of p change places": Bug(
        "products.cuh", "void fetch_p(", "to[0] = {words.x, words.y};", "to[0] = {words.z, words.w};", build=SHARED
    ),
    "the maximum is of half a row": Bug(
        "quad_pair.cuh", "float most(", "return fmaxf(x, __shfl_xor_sync(~0u, x, 4));", "return x;"
    ),
    "the sum is of half a row": Bug(
        "quad_pair.cuh", "float sum(", "return x + __shfl_xor_sync(~0u, x, 4);", "return x;"
    ),
    "outputs are not rescaled": Bug("rows.cuh", "void soften()", "rescale(o[m], correction);"),
    "keys past the end are not hidden": Bug(
        "staged_loop.cuh", "bool is_masked(", "key + kKeys > work.keys", "false", case=BEHIND
    ),
    "keys past the end of V are not cleared": Bug(
        "staged_rows.cuh", "void fetch(", "row + pass * kPass < rows", "true", case=BEHIND
    ),
    "the diagonal's tile is taken for a whole one": Bug(
        "staged_loop.cuh",
        "bool is_masked(",
        "key + kKeys > row + work.right + 1",
        "key > row + work.right + 1",
    ),
    "a warp skips a tile that its last row sees": Bug(
        "staged_loop.cuh", "bool is_seen(", "key < row + kWarpRows + work.right", "key < row + work.right", case=EVEN
    ),
    "rows past the end are stored": Bug(
        "store_quad_pair.cuh", "void store_panel(", "mine < work.queries", "true", "out of bounds: st.global"
    ),
    "V is multiplied before it has come": Bug("staged_loop.cuh", "put<kVPitch, 0>", "__syncthreads();", says=UNORDERED),
    "the next K is multiplied before it has come": Bug(
        "staged_loop.cuh", "if (tile > work.first) loader", "__syncthreads();", says=UNORDERED
    ),
    "p is read before it is stored": Bug(
        "rows.cuh", "void pack()", "if (!kPInRegisters) together();", says=UNORDERED, build=SHARED
    ),
    "maxima are read before they are stored": Bug(
        "rows.cuh", "void exchange(", "together();", says=UNORDERED, build=SPLIT
    ),
    "the other warp's keys are left out of the sum": Bug(
        "rows.cuh", "void sum_up()", "kSplit > 1 ? mine[m][h] + others[m][h] : mine[m][h]", "mine[m][h]", build=SPLIT
    ),
    "K is fetched from the tile at hand": Bug("staged_loop.cuh", "void run(", "tile - 1", "tile"),
    "the next fragment of K is multiplied": Bug("products.cuh", "void multiply_scores()", "k[i % 2]", "k[next % 2]"),
    "the next fragment of V is multiplied": Bug("products.cuh", "void multiply_values()", "v[now % 2]", "v[next % 2]"),
    "the next fragment of Q is multiplied": Bug(
        "products.cuh",
        "slot_of(int span)",
        "kHeldSpans + span % 2",
        "kHeldSpans",
        build=SHARED,
    ),
    "K is stored where V lies": Bug("staged_loop.cuh", "if (tile > work.first) loader", "at.k", "at.v", UNORDERED),
}


@cache
def kernel(build: int) -> Kernel:
    case, config = BUILDS[build]
    return planted(Kernel(PATH, config, case.problem), "forward_sm70.cu", BUGS.values())


def found(mode: Mode, number: int, build: int, case: ForwardCase | None = None) -> str:
    return outcome(run, kernel(build), mode, case or BUILDS[build][0], number, section=1)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("build", range(len(BUILDS)))
def test_nothing_is_found_where_no_mistake_is_armed(build: int, mode: Mode) -> None:
    assert found(mode, 0, build) == ""
    assert found(mode, 0, build, replace(BEHIND, head_dim=BUILDS[build][0].head_dim)) == ""


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", BUGS)
def test_a_planted_mistake_is_found(name: str, mode: Mode) -> None:
    bug = BUGS[name]
    assert re.search(bug.says, found(mode, 1 + list(BUGS).index(name), bug.build, bug.case))
