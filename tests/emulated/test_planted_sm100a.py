"""Mistakes planted in the source of the sm100a forward kernel: each is found, by a report or by the oracle.

The second half was written with the PTX ISA alone in mind: what a reader of its chapters on tcgen05, mbarrier and the
async proxy might leave out or turn round.
"""

import re
from dataclasses import replace
from functools import cache

import pytest

from microbench.emulator import MODES, Mode
from tests.emulated.forward_case import ForwardCase
from tests.emulated.forward_launch import Kernel
from tests.emulated.forward_planted import WRONG, Bug, outcome, planted
from tests.emulated.forward_sm100a import PATH, config_of, run

# Two tiles of rows, the last one cut short, and four of keys, for one block: rings go round, tiles of rows follow.
# One block has all rows to do, four tiles at a time.
SCHEDULE = {"blocks": 1, "section": 4}
CASE = ForwardCase(heads_q=1, heads_kv=1, lengths=((300, 250),), softcap=50.0, right=0, spread=12.0)
# One tile of keys: all that orders two tiles of rows is what they hand on.
SHORT = replace(CASE, heads_q=4, lengths=((140, 20),))
BEHIND = replace(CASE, spare=20)
# Scores of up to 2^32, which a softcap lets through.
FAR = replace(CASE, softcap=2.0**40, spread=2.0**30)

LOST = "deadlock: .*mbarrier"
RACE = "race: "

PIPELINE = {
    "scores are multiplied into the other turn's buffer": Bug(
        "multiply.cuh",
        "void multiply_scores",
        "scores.stage() * kScoreColumns",
        "(scores.count + 1) % 2 * kScoreColumns",
        RACE,
    ),
    "outputs of both query tiles are one": Bug(
        "multiply.cuh", "void multiply_values", "query_tile * kValueDim", "0 * kValueDim", f"{RACE}|{WRONG}"
    ),
    "K is released while the second query tile reads it": Bug(
        "multiply.cuh",
        "void multiply_scores",
        "query_tile == kQueryTiles - 1",
        "query_tile == 0",
        f"{RACE}|{LOST}|misuse|arriv",
    ),
    "outputs are not waited for before they are rescaled": Bug(
        "correct.cuh", "void step(", "await_values(query_tile);", says="fence: tcgen05.ld|race: "
    ),
    "the correction does not wait for the factor": Bug(
        "correct.cuh", "void step(", "ptx::mbarrier_wait(at.factor_full + 8 * turn.stage(), turn.parity());", says=RACE
    ),
    "sums are written over those that nobody has read": Bug(
        "softmax.cuh",
        "void run(",
        "ptx::mbarrier_wait(at.sum_empty + 8 * query_tile, sums.parity() ^ 1);",
        says=f"{RACE}|{LOST}",
        case=SHORT,
    ),
    "a piece is overwritten before it is written out": Bug(
        "correct.cuh",
        "void put_piece",
        "ptx::mbarrier_wait(at.piece_empty + 8 * piece.stage(), piece.parity() ^ 1);",
        says=RACE,
    ),
    "the writer reads a piece that is not there": Bug(
        "write.cuh",
        "void write(",
        "ptx::mbarrier_wait(at.piece_full + 8 * piece.stage(), piece.parity());",
        says=f"{RACE}|{LOST}",
    ),
    "what is behind the end is not cleared": Bug(
        "clear.cuh",
        "void clear(",
        "ptx::store_shared4(tile + panel * kKeys * kSpan + byte, {0, 0, 0, 0});",
        case=BEHIND,
    ),
    "far scores are not counted from their largest": Bug(
        "softmax.cuh", "void step(", "if (far) come_near(s, state);", case=FAR
    ),
    "the factor is of the row beside": Bug(
        "correct.cuh", "void step(", "turn.stage() * kRows + thread", "turn.stage() * kRows + (thread ^ 1)"
    ),
}
FROM_THE_ISA = {
    "no fence after the wait for P": Bug(
        "multiply.cuh", "void multiply_values", "ptx::tcgen05_fence_after();", says="tcgen05.fence::after_thread_sync"
    ),
    "no fence before P is announced": Bug(
        "softmax.cuh", "void step(", "ptx::tcgen05_fence_before();", says="tcgen05.fence::before_thread_sync"
    ),
    "no fence after the wait for scores": Bug(
        "softmax.cuh", "void load_scores", "ptx::tcgen05_fence_after();", says="tcgen05.fence::after_thread_sync"
    ),
    "registers are read before wait::ld": Bug(
        "softmax.cuh", "void load_scores", "ptx::tcgen05_wait_ld();", says=f"{RACE}|{WRONG}"
    ),
    "P is announced before wait::st": Bug("softmax.cuh", "void step(", "ptx::tcgen05_wait_st();", says=RACE),
    "an arrival where a commit belongs": Bug(
        "multiply.cuh",
        "void multiply_scores",
        "commit(at.s_full + 8 * scores.stage());",
        "ptx::mbarrier_arrive(at.s_full + 8 * scores.stage());",
        RACE,
    ),
    "V is described as K-major": Bug(
        "multiply.cuh", "tcgen05_mma_f16_ts<kGroup>(", "kInstruction", "kInstruction & ~(1u << 16)", f"{RACE}|{WRONG}"
    ),
    "groups of eight keys lie twice as far apart": Bug(
        "multiply.cuh", "kKeys * kSpan, ", "8 * kSpan", "16 * kSpan", f"{RACE}|{WRONG}"
    ),
    "lanes of the first warp for all": Bug(
        "softmax.cuh", "void soften", "warp % 4 * 32 << 16", "0 << 16", "reaches lanes"
    ),
    "the block allocates half of the columns it uses": Bug(
        "forward_sm100a.cu",
        "",
        "ptx::tcgen05_alloc<kGroup>(at.tensor_memory, kColumns);",
        "ptx::tcgen05_alloc<kGroup>(at.tensor_memory, kColumns / 2);",
        "out of bounds: tcgen05",
    ),
    "columns are never given back": Bug(
        "forward_sm100a.cu",
        "  meet();\n  if",
        "if (warp_number() == kIssuer) ptx::tcgen05_dealloc<kGroup>(ptx::load_shared(at.tensor_memory), kColumns);",
        says="without tcgen05.dealloc",
    ),
    "cleared rows are not fenced for the async proxy": Bug(
        "clear.cuh", "void clear(", "ptx::fence_proxy_async();", says="fence.proxy.async", case=BEHIND
    ),
    "initialised barriers are not fenced": Bug(
        "forward_sm100a.cu", "", "ptx::fence_mbarrier_init();", says="without fence.mbarrier_init"
    ),
    "too few bytes are expected": Bug(
        "load.cuh",
        "void load(",
        "ptx::mbarrier_arrive_expect(full + 8 * ring.stage(), bytes);",
        "ptx::mbarrier_arrive_expect(full + 8 * ring.stage(), bytes - 16);",
        f"{LOST}|{RACE}",
    ),
    "the parity of the phase before": Bug(
        "softmax.cuh", "void load_scores", "turn.parity()", "turn.parity() ^ 1", f"{RACE}|{LOST}"
    ),
    "ready counts the softmax alone": Bug(
        "forward_sm100a.cu", "", "init(at.ready, 2, kGroup * (4 + 4));", "init(at.ready, 2, 4);", f"{RACE}|{LOST}"
    ),
}
BUGS = PIPELINE | FROM_THE_ISA


@cache
def armed() -> Kernel:
    """The kernel with all of them."""
    return planted(Kernel(PATH, config_of(64, polynomial=4), CASE.problem), "forward_sm100a.cu", BUGS.values())


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("case", [CASE, SHORT, BEHIND, FAR], ids=["case", "short", "behind", "far"])
def test_nothing_is_found_where_no_mistake_is_armed(case: ForwardCase, mode: Mode) -> None:
    assert outcome(run, armed(), mode, case, 0, **SCHEDULE) == ""


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", BUGS)
def test_a_planted_mistake_is_found(name: str, mode: Mode) -> None:
    bug = BUGS[name]
    number = 1 + list(BUGS).index(name)
    assert re.search(bug.says, outcome(run, armed(), mode, bug.case or CASE, number, **SCHEDULE))
