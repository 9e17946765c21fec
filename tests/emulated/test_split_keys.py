"""Heads of a group in a tile of rows, and its keys on several blocks: right, the same bits, and mistakes are found."""

import re
from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from microbench.emulator import MODES, EmulatedDevice
from tests.emulated.forward_case import ForwardCase, inputs_of
from tests.emulated.forward_launch import Kernel
from tests.emulated.forward_planted import Bug, outcome, planted
from tests.emulated.forward_split_keys import PATH, config_of, run
from tests.emulated.forward_tests import Forward, Parted, PartedTests

# Two builds: of heads that share rows, sequences of many lengths in one of them, and of a mask, where none do.
EVERY = ForwardCase(heads_q=6, heads_kv=2, seq_q=512, seq_kv=512, left=0, right=0, sinks=True)
SHARED, PACKED = EVERY.problem, replace(EVERY, lengths=((512, 512),), softcap=1.0).problem
ALONE = replace(EVERY, mask="full", alibi="heads").problem
MOST, MANY = 16, 20  # parts: more than rows have tiles, but of LONG

# 23 queries of three heads: two tiles of rows, and rows of a query on both sides of their border.
SOME = ForwardCase(batch=2, heads_q=6, heads_kv=2, seq_q=23, seq_kv=203)
SEQUENCES = ((23, 100), (1, 133), (0, 5), (5, 0), (40, 64), (22, 150))
CASES = {
    "full": SOME,
    "one query": replace(SOME, seq_q=1),
    "one query of seven heads": replace(SOME, heads_q=7, heads_kv=1, seq_q=1),
    "causal from the bottom right": replace(SOME, right=0, aligned="bottom_right"),
    "rows that see nothing": replace(SOME, right=-12),
    "a window": replace(SOME, left=-40, right=20, aligned="bottom_right"),
    "a window behind": replace(SOME, left=-40, aligned="bottom_right"),
    "(B, S, H, D) in memory": replace(SOME, memory="bshd"),
    "sinks": replace(SOME, sinks=True),
    "sinks and nothing else": replace(SOME, sinks=True, right=-40),
    "maxima that grow": replace(SOME, spread=12.0),
    "maxima that grow past 2^128": replace(SOME, spread=100.0),
    "no group": replace(SOME, heads_q=2, seq_q=70),
    "packed sequences": ForwardCase(heads_q=6, heads_kv=2, lengths=SEQUENCES, softcap=30.0),
    "packed, causal and sinks": ForwardCase(
        heads_q=6, heads_kv=2, lengths=SEQUENCES, softcap=30.0, right=0, aligned="bottom_right", sinks=True
    ),
    "a mask and ALiBi": replace(SOME, mask="full", alibi="heads"),
}
FORWARD = Forward(run, Kernel(PATH, config_of(32), SHARED), Kernel(PATH, config_of(32), PACKED))
BY_HEAD = Forward(run, Kernel(PATH, config_of(32), ALONE), Kernel(PATH, config_of(32), PACKED))
PARTED = Parted(CASES, FORWARD, BY_HEAD)


@pytest.mark.parametrize("name", CASES)
def test_parts_of_a_row_are_right_together(name: str) -> None:
    for key_splits in (1, 3, MOST):
        assert not PARTED.why_wrong("random", name, key_splits)


class TestParts(PartedTests):
    parted = PARTED


def test_whoever_arrives_last_leaves_the_same_bits() -> None:
    case = CASES["maxima that grow"]
    inputs, kernel = inputs_of(case), FORWARD.featured
    first, *others = (run(EmulatedDevice(mode), case, kernel, inputs=inputs, key_splits=5) for mode in MODES)
    for other in others:
        np.testing.assert_array_equal(first.out, other.out)
        np.testing.assert_array_equal(first.lse, other.lse)


# Two tiles of rows, which two queries' heads lie on both sides of, and five of keys; one part has none of the band.
CASE = ForwardCase(
    heads_q=6, heads_kv=2, lengths=((23, 150),), softcap=50.0, right=0, left=-100, aligned="bottom_right", spread=12.0
)
SINKS = replace(CASE, sinks=True)
USED = ForwardCase(
    batch=2,
    heads_q=6,
    heads_kv=2,
    seq_q=23,
    seq_kv=150,
    ranges=((20, 140, 3), (23, 90, 0)),
    right=0,
    aligned="bottom_right",
)
LONG = replace(CASE, lengths=((23, 660),), left=None)  # more parts than are added at once
UNORDERED = "race between blocks: .* is not ordered after the"
ANY = "race|^out|^lse|left|wrote|out of bounds"
BUGS = {
    "outputs are counted before they are there": Bug(
        "parts.cuh",
        "bool arrive(",
        "ptx::count_ordered(counter)",
        "atomicAdd(counter, 1)",
        UNORDERED,
    ),
    "one thread arrives before the others have left theirs": Bug(
        "parts.cuh", "bool arrive(", "__syncthreads();", says=UNORDERED
    ),
    "counters are left": Bug("parts.cuh", "bool arrive(", "if (last) *counter = 0;", says="left"),
    "all tiles arrive at one counter": Bug(
        "parts.cuh", "bool arrive(", "launch.arrivals + tile", "launch.arrivals", ANY
    ),
    "parts that there are not are waited for": Bug(
        "parts.cuh", "bool arrive(", "count - 1", "launch.key_splits - 1", ANY
    ),
    "parts lie over one another": Bug(
        "parts.cuh", "ptx::u64 row_of(", "static_cast<long long>(tile) * launch.key_splits", "tile", says=ANY
    ),
    "rows of a part lie over one another": Bug(
        "parts.cuh", "ptx::u64 row_of(", "kRowFloats", "(kRowFloats - 4)", says=ANY
    ),
    "columns of neighbouring lanes change places": Bug(
        "parts.cuh", "void leave(", "8 * (j + odd)", "8 * (j + 1 - odd)"
    ),
    "a lane keeps what it should trade": Bug("parts.cuh", "void leave(", "odd ? o[a] : o[b]", "odd ? o[b] : o[a]"),
    "a part's sum is left of one lane": Bug(
        "parts.cuh", "void leave(", "RowPair<kValueDim / 2>::sum(rows.state[m].sum[h])", "rows.state[m].sum[h]"
    ),
    "the last part is left out": Bug(
        "added_parts.cuh", "void add(", "begin + i >= parts.count", "begin + i >= parts.count - 1"
    ),
    "a part counts twice": Bug("added_parts.cuh", "ask(some[i],", "from + i * stride", "from"),
    "all spans are the first one": Bug("added_parts.cuh", "void ask(", "span * kStep", "0"),
    "all spans are stored as the first one": Bug("store_group.cuh", "void store_spans(", "out + 2 * at", "out", ANY),
    "a part weighs as its neighbour does": Bug(
        "added_parts.cuh", "states[i] = ptx::load2_cg(", "from + i * stride", "from"
    ),
    "what there is so far is not rescaled": Bug("added_parts.cuh", "void rescale(", "x *= kept;", case=LONG),
    "its sum is not rescaled": Bug("added_parts.cuh", "void rescale(", "sum *= kept;", case=LONG),
    "it is counted from another offset": Bug("added_parts.cuh", "void add(", "most.value = next;", says=ANY, case=LONG),
    "parts are not rescaled": Bug("added_parts.cuh", "void add(", "ptx::ex2(offset_of(states[i]) - base)", "1.f"),
    "those behind are the first ones again": Bug("added_parts.cuh", "from = parts.row_of(", "begin", "0", case=LONG),
    "rows are those of one head": Bug("work.cuh", "int head_of(", "head * group + row % group", "head * group", ANY),
    "rows are queries": Bug("work.cuh", "int query_of(", "row / group", "row", ANY),
    "a tile sees what its first row sees": Bug(
        "work.cuh", "if constexpr (kPackGqa) {", "work.query_of(work.row + kTileRows - 1)", "work.query_of(work.row)"
    ),
    "a tile's window begins at its row": Bug(
        "work.cuh", "if (kWindow) begin", "work.query_of(work.row) + work.left", "work.row + work.left"
    ),
    "a warp sees what its row's number says": Bug(
        "pipeline.cuh",
        "bool is_seen(",
        "work.query_of(work.row + warp_row())",
        "(work.row + warp_row())",
    ),
    "Q of a row is another head's": Bug(
        "pipeline.cuh", "void load_group(", "work.head_of(row)", "work.head_of(row + 1)", ANY
    ),
    "Q is as long as its queries": Bug("pipeline.cuh", "void load_group(", "work.queries * work.group", "work.queries"),
    "every warp is idle beyond the queries": Bug(
        "pipeline.cuh", "bool is_idle(", "work.query_of(work.row + warp_row())", "work.row + warp_row()"
    ),
    "scores are hidden by rows": Bug(
        "features/band.cuh", "const int further", "work.query_of(row + h * Scores::kStep) - row", "h * Scores::kStep"
    ),
    "tiles seen in full begin by rows": Bug(
        "pipeline.cuh",
        "if constexpr (kPackGqa && kWindow)",
        "work.query_of(work.row + kTileRows - 1)",
        "work.query_of(work.row)",
    ),
    "lse lies as if heads were groups": Bug(
        "packed_rows.cuh", "float* lse(", "launch.heads * work.group", "launch.heads", ANY, case=USED
    ),
    "every head has its group's sink": Bug(
        "packed_rows.cuh", "OfRow(const Work& tile", "work.head = tile.head_of(row);", says=ANY, case=SINKS
    ),
    "rows that nobody uses are left as they were": Bug(
        "store_group.cuh", "const bool unused =", "mine.query < work.rows", "false", says=ANY, case=USED
    ),
}


@cache
def with_bugs(case: ForwardCase) -> Kernel:
    kernel = Kernel(PATH, config_of(32), case.problem)
    return planted(kernel, "forward_sm80.cu", BUGS.values())


def found(case: ForwardCase, number: int) -> list[str]:
    """By mode, of keys in one piece and in many."""
    kernel = with_bugs(case)
    most = MANY if case is LONG else MOST
    return [outcome(run, kernel, mode, case, number, section=1, key_splits=n) for n in (1, most) for mode in MODES]


@pytest.mark.parametrize("case", [CASE, SINKS, USED, LONG], ids=["windowed", "sinks", "ranges", "long"])
def test_nothing_is_found_where_no_mistake_is_armed(case: ForwardCase) -> None:
    assert not any(found(case, 0))


@pytest.mark.parametrize("name", BUGS)
def test_a_planted_mistake_is_found_in_some_mode(name: str) -> None:
    said = found(BUGS[name].case or CASE, 1 + list(BUGS).index(name))
    assert any(re.search(BUGS[name].says, each) for each in said), said
