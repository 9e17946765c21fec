"""Mistakes planted in the sm75 forward kernel: each is found, by the emulator's report or by the oracle."""

import re
from dataclasses import replace
from functools import cache

import pytest

from microbench.emulator import MODES, Mode
from tests.emulated.forward_case import ForwardCase
from tests.emulated.forward_launch import Kernel
from tests.emulated.forward_planted import Bug, outcome, planted
from tests.emulated.forward_sm75 import PATH, config_of, run

# Two tiles of rows, the second one cut short, and five of keys.
CASE = ForwardCase(heads_q=1, heads_kv=1, lengths=((100, 150),), softcap=50.0, right=50, spread=12.0, dtype="float16")
BEHIND = replace(CASE, lengths=((100, 140),), spare=20, right=200, spread=1.0)
EVEN = replace(CASE, spread=1.0, right=60)  # every key counts
# Q in registers; and in shared memory, 32 rows a warp.
BUILDS = ((CASE, config_of(32)), (CASE, config_of(32, warp_rows=32, q_in_registers=0)))
SHARED = 1
UNORDERED = "race: (ld|st).* not ordered after the (write|read)"

BUGS = {
    "matrices of K count down the keys first": Bug(
        "products.cuh", "k_at(at.k", "lane_address(false)", "lane_address(true)"
    ),
    "matrices of V count across the columns first": Bug(
        "products.cuh", "v_at(at.v", "lane_address(true)", "lane_address(false)"
    ),
    "V is not transposed": Bug(
        "products.cuh",
        "void load_v(",
        "ptx::ldmatrix_trans(to, v_at + i / kDepth * 16 * kPitch + i % kDepth * 32);",
        "ptx::ldmatrix(to, v_at + i / kDepth * 16 * kPitch + i % kDepth * 32);",
    ),
    "matrices of K change places": Bug("products.cuh", "void multiply_scores()", "b[span]", "b[2 * span]"),
    "upper and lower keys of V change places": Bug("products.cuh", "void multiply_values()", "b[half]", "b[1 - half]"),
    "the lower rows of p are the upper ones": Bug(
        "products.cuh", "void multiply_values()", "a[2 * half + 1]", "a[2 * half]"
    ),
    "p is that of other keys": Bug(
        "products.cuh", "void multiply_values()", "p[m][block]", "p[m][(block + 1) % kBlocks]"
    ),
    "one key of p stands for two": Bug("rows.cuh", "void pack()", "s[m][2 * i + 1]", "s[m][2 * i]"),
    "rows of Q change places": Bug("products.cuh", "void load_queries(", "i % 2 * 2 + h", "i % 2 * 2 + 1 - h"),
    "Q is not traded among lanes": Bug("products.cuh", "void load_queries(", "transpose_quad(mine, lane() % 4);"),
    "the maximum is of half a row": Bug(
        "fragment.cuh", "float most(float x)", "return fmaxf(x, __shfl_xor_sync(~0u, x, 2));", "return x;"
    ),
    "the sum is of half a row": Bug(
        "fragment.cuh", "float sum(float x)", "return x + __shfl_xor_sync(~0u, x, 2);", "return x;"
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
        "store_columns.cuh", "void store_panel(", "mine < work.queries", "true", "out of bounds: st.global"
    ),
    "two lanes store one row's columns": Bug(
        "store_columns.cuh", "const int column", "8 * (t % 2)", "8 * lower", "race: write"
    ),
    "the first K is multiplied before it has come": Bug(
        "staged_loop.cuh", "clear();", "__syncthreads();", says=UNORDERED
    ),
    "V is multiplied before it has come": Bug("staged_loop.cuh", "put<kVPitch, 0>", "__syncthreads();", says=UNORDERED),
    "the next K is multiplied before it has come": Bug(
        "staged_loop.cuh", "if (tile > work.first) loader", "__syncthreads();", says=UNORDERED
    ),
    "K is fetched from the tile at hand": Bug("staged_loop.cuh", "void run(", "tile - 1", "tile"),
    "K is stored where V lies": Bug("staged_loop.cuh", "if (tile > work.first) loader", "at.k", "at.v", UNORDERED),
    "the next fragment of K is multiplied": Bug("products.cuh", "void multiply_scores()", "k[i % 2]", "k[(i + 1) % 2]"),
    "the next fragment of V is multiplied": Bug("products.cuh", "void multiply_values()", "v[i % 2]", "v[(i + 1) % 2]"),
    "the next fragment of Q is multiplied": Bug(
        "products.cuh",
        "void multiply_scores()",
        "kQInRegisters ? column : column % 2",
        "kQInRegisters ? column : (column + 1) % 2",
        build=SHARED,
    ),
    "Q of the panel before is read": Bug("products.cuh", "void load_q(", "16 * m * kPitch", "0", build=SHARED),
}


@cache
def kernel(build: int) -> Kernel:
    case, config = BUILDS[build]
    return planted(Kernel(PATH, config, case.problem), "forward_sm75.cu", BUGS.values())


def found(mode: Mode, number: int, build: int, case: ForwardCase | None = None) -> str:
    return outcome(run, kernel(build), mode, case or BUILDS[build][0], number, section=1)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("build", range(len(BUILDS)))
def test_nothing_is_found_where_no_mistake_is_armed(build: int, mode: Mode) -> None:
    assert found(mode, 0, build) == ""
    assert found(mode, 0, build, BEHIND) == ""


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", BUGS)
def test_a_planted_mistake_is_found(name: str, mode: Mode) -> None:
    bug = BUGS[name]
    assert re.search(bug.says, found(mode, 1 + list(BUGS).index(name), bug.build, bug.case))
