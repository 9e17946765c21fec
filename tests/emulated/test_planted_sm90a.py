"""Mistakes planted in the source of the sm90a forward kernel: each is found, by the emulator's report or by the oracle.

All of them stand in one build: what is altered stays beside what replaces it, and a number chooses.
"""

import re
from dataclasses import replace
from functools import cache

import pytest

from microbench.emulator import MODES, Mode
from tests.emulated.forward_case import ForwardCase
from tests.emulated.forward_launch import Kernel
from tests.emulated.forward_planted import Bug, outcome, planted
from tests.emulated.forward_sm90a import PATH, config_of, run

# Three tiles of rows, the last one cut short, and four of keys, for one block: rings go round, tiles of rows follow one
# another, and one warpgroup skips what the other sees.
# One block has all rows to do, four tiles at a time.
SCHEDULE = {"blocks": 1, "section": 4}
CASE = ForwardCase(heads_q=1, heads_kv=1, lengths=((300, 250),), softcap=50.0, right=0, spread=12.0)
# Four tiles of rows in a row that see nothing: the producer has no loads to wait for.
IDLE = ForwardCase(heads_q=4, lengths=((140, 20),), softcap=50.0, right=-130)
BEHIND = replace(CASE, spare=20)
# Scores of up to 2^32, which a softcap lets through.
FAR = replace(CASE, softcap=2.0**40, spread=2.0**30)

LOST = "deadlock: .*mbarrier"
UNORDERED = "race: wgmma .* not ordered after the write by a copy"
OVERWRITTEN = "race: cp.async.bulk.tensor load .* not ordered after the read by a collective"


SOFTMAX = "row_softmax.cuh"
HELD = 1  # the build that holds Q in registers
BUGS = {
    "mbarriers are not fenced": Bug("block.cuh", "", "ptx::fence_mbarrier_init();", says="without fence.mbarrier_init"),
    "too few bytes are expected": Bug(
        "produce.cuh",
        "void load_tile",
        "ptx::mbarrier_arrive_expect(full, kBytes);",
        "ptx::mbarrier_arrive_expect(full, kBytes - 16);",
        f"{LOST}|{UNORDERED}",
    ),
    "K is not waited for": Bug(
        "consume.cuh", "void step(", "ptx::mbarrier_wait(at.k_full + 8 * k.stage(), k.parity());", says=UNORDERED
    ),
    "K is waited for with the wrong parity": Bug(
        "consume.cuh",
        "void step(",
        "ptx::mbarrier_wait(at.k_full + 8 * k.stage(), k.parity());",
        "ptx::mbarrier_wait(at.k_full + 8 * k.stage(), k.parity() ^ 1);",
        f"{UNORDERED}|{LOST}",
    ),
    "V is multiplied from the stage ahead": Bug(
        "products.cuh",
        "void multiply_values",
        "v.stage() * kVBytes",
        "(v.count + 1) % kStages * kVBytes",
        UNORDERED,
    ),
    "scores are not waited for": Bug("consume.cuh", "void step(", "ptx::wgmma_wait<1>();", says=OVERWRITTEN),
    "the last p V is not waited for": Bug("consume.cuh", "void last(", "ptx::wgmma_wait<0>();", says=OVERWRITTEN),
    "Q is held before it has come": Bug(
        "consume.cuh",
        "void begin(",
        "ptx::mbarrier_wait(at.q_full + 8 * group, q.parity());",
        says="race: ldmatrix",
        build=HELD,
    ),
    "Q is held from other places": Bug(
        "products.cuh",
        "void hold_queries",
        "(within + lane / 16 * 16) ^ swizzle",
        "within + lane / 16 * 16",
        build=HELD,
    ),
    "registers are not fenced": Bug(
        "products.cuh", "void multiply_values", "ptx::wgmma_fence();", says="without wgmma.fence"
    ),
    "V is never released": Bug(SOFTMAX, "unsigned end_values()", "released = give_back_first(bar);", says=LOST),
    "K is never released": Bug(SOFTMAX, "unsigned end_keys(", "give_back(bar);", says=LOST),
    "a skipped tile is not released": Bug(
        "consume.cuh", "void skip()", "give_back(at.k_empty + 8 * v.stage());", says=LOST
    ),
    "Q is overwritten while it is read": Bug(
        "produce.cuh",
        "for (int group",
        "ptx::mbarrier_wait(at.q_empty + 8 * group, q.parity() ^ 1);",
        says=f"{OVERWRITTEN}|{UNORDERED}",
    ),
    "a tile's place is overwritten": Bug(
        "schedule.cuh",
        "void publish",
        "ptx::mbarrier_wait(at.tile_empty + 8 * slot.stage(), slot.parity() ^ 1);",
        says="race: st.shared .* not ordered after the read",
        case=IDLE,
    ),
    "what is behind the end is not cleared": Bug(
        "clear.cuh",
        "void clear(",
        "clear_rows<ValuePanels, kKeys, 32>(at.v + v.stage() * kVBytes, work.keys - (work.last - 1) * kKeys, lane);",
        case=BEHIND,
    ),
    "cleared rows are not fenced": Bug(
        "clear.cuh", "void clear(", "ptx::fence_proxy_async();", says="fence.proxy.async"
    ),
    "uncleared V is not waited for": Bug(
        "clear.cuh",
        "void clear(",
        "ptx::mbarrier_wait(at.v_raw + 8 * v.stage(), parities >> v.stage() & 1);",
        says=f"{UNORDERED}|race",
    ),
    "nobody has the first turn": Bug(
        "take_rows.cuh",
        "void consume(",
        "if (kPingpong && self.group == kWarpgroups - 1) self.pass_turn();",
        says="deadlock: .*bar.sync",
    ),
    "counters are not put back": Bug(
        "produce.cuh", "load_v(key, last);", "put_counters_back(launch);", says="left the counters"
    ),
    "keys past the end are not hidden": Bug(
        "consume.cuh", "int first(", "adjust<true>(work, row, tile);", "adjust<false>(work, row, tile);"
    ),
    "the diagonal is hidden": Bug(
        "features/band.cuh", "void hide_outside(", "row + work.right + 1", "row + work.right"
    ),
    "far scores are not counted from their largest": Bug(
        SOFTMAX, "void weigh(", "if (far) come_near(s, state);", case=FAR
    ),
    "offsets stay near": Bug(SOFTMAX, "void weigh(", "if (far) go_back(state, scale_log2());", says="^lse: ", case=FAR),
    "outputs are not rescaled": Bug(SOFTMAX, "void raise(", "rescale(o, correction);"),
    "a guess is kept that failed": Bug(
        "consume.cuh",
        "void step(",
        "if (!guess(keys, end_values())) raise<true>(work, row, tile);",
        "guess(keys, end_values());",
        case=FAR,
    ),
    "the sums of a guess are forgotten": Bug(SOFTMAX, "bool guess(", "state.sum[h] += added[h];"),
    "p is written while it is multiplied": Bug(SOFTMAX, "unsigned end_values()", "ptx::wgmma_wait<0>();", says=""),
    "outputs are not cleared": Bug("products.cuh", "void multiply_values", "accumulate || i > 0", "true"),
    "rows past the end are stored": Bug(
        "store.cuh", "void store_rows(", "row + 8 * h < work.queries", "true", "out of bounds: st.global"
    ),
}


@cache
def armed(build: int) -> Kernel:
    """The kernel with all of them."""
    return planted(Kernel(PATH, config_of(64, q_in_registers=build), CASE.problem), "forward_sm90a.cu", BUGS.values())


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("build", [0, HELD], ids=["", "Q in registers"])
@pytest.mark.parametrize("case", [CASE, IDLE, FAR], ids=["case", "idle", "far"])
def test_nothing_is_found_where_no_mistake_is_armed(case: ForwardCase, build: int, mode: Mode) -> None:
    assert outcome(run, armed(build), mode, case, 0, **SCHEDULE) == ""


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", BUGS)
def test_a_planted_mistake_is_found(name: str, mode: Mode) -> None:
    bug = BUGS[name]
    number = 1 + list(BUGS).index(name)
    assert re.search(bug.says, outcome(run, armed(bug.build), mode, bug.case or CASE, number, **SCHEDULE))
