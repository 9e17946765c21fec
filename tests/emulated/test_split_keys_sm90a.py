"""Keys of a tile of rows on several persistent blocks: right, the same bits whoever is late, and mistakes are found."""

import re
from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from microbench.emulator import MODES, EmulatedDevice, Mode
from tests.emulated.forward_case import ForwardCase, inputs_of
from tests.emulated.forward_launch import Kernel
from tests.emulated.forward_planted import Bug, outcome, planted
from tests.emulated.forward_sm90a_split import PATH, config_of, run
from tests.emulated.forward_tests import Forward

# Three builds with causality, which a case without it leaves open, and one of each other width.
SOME = ForwardCase(batch=2, heads_q=4, heads_kv=2, seq_q=140, seq_kv=203, right=0, aligned="bottom_right")
SEQUENCES = ((100, 100), (1, 133), (0, 5), (5, 0), (140, 64), (65, 150))
MANY = ForwardCase(heads_q=2, lengths=SEQUENCES, right=0, sinks=True)
USED = replace(SOME, ranges=((100, 180, 20), (140, 90, 0)))
CAUSAL, RANGED = (Kernel(PATH, config_of(32), case.problem) for case in (replace(SOME, sinks=True), USED))
FORWARD = Forward(run, CAUSAL, Kernel(PATH, config_of(32), MANY.problem))
CASES = {
    "causal from the bottom right": SOME,
    "causal": replace(SOME, aligned="top_left"),
    "rows that see nothing": replace(SOME, right=-70, aligned="top_left"),
    "rows that see nothing of a part": replace(SOME, right=63, aligned="top_left"),
    "(B, S, H, D) in memory": replace(SOME, memory="bshd"),
    "one query": replace(SOME, seq_q=1),
    "one query and one key": replace(SOME, seq_q=1, seq_kv=1),
    "maxima that grow": replace(SOME, spread=12.0),
    "maxima that grow past 2^128": replace(SOME, spread=100.0),
    "sinks": replace(SOME, sinks=True),
    "sinks and nothing else": replace(SOME, sinks=True, right=-70, aligned="top_left"),
    "packed, causal and sinks": MANY,
    "packed and causal from the bottom right": replace(MANY, aligned="bottom_right", sinks=False),
    "ranges of rows": USED,
    "ranges without queries or keys": replace(SOME, ranges=((0, 180, 0), (140, 0, 0))),
}
WIDTHS = {
    "full, three warpgroups": (ForwardCase(seq_q=200, seq_kv=333, heads_q=2), config_of(48, 3)),
    "128": (ForwardCase(seq_q=130, seq_kv=333, head_dim=128, heads_q=1, dtype="float16"), config_of(64)),
    "72": (ForwardCase(seq_q=130, seq_kv=200, head_dim=72, heads_q=1, right=0), config_of(32)),
    "192 and 128": (ForwardCase(seq_q=70, seq_kv=170, head_dim=192, head_dim_v=128, heads_q=1), config_of(32)),
}
PARTS_AND_BLOCKS = ((1, 2), (3, 2), (5, 3), (16, 1))  # parts: more than some rows have tiles of keys


def why_wrong(mode: Mode, case: ForwardCase, parts: int, blocks: int) -> str:
    kernel = RANGED if case.ranges else None
    return FORWARD.why_wrong(mode, case, kernel, key_splits=parts, blocks=blocks)


@pytest.mark.parametrize("name", CASES)
def test_parts_of_a_row_are_right_together(name: str) -> None:
    for parts, blocks in PARTS_AND_BLOCKS:
        assert not why_wrong("random", CASES[name], parts, blocks)


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("name", CASES)
def test_any_number_of_parts_and_blocks_is_right_in_every_mode(name: str) -> None:
    for mode in MODES:
        for parts, blocks in (*PARTS_AND_BLOCKS, (2, 5), (8, 4)):
            assert not why_wrong(mode, CASES[name], parts, blocks)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("width", WIDTHS)
def test_other_widths_are_right_in_every_mode(width: str, mode: Mode) -> None:
    case, config = WIDTHS[width]
    assert not FORWARD.why_wrong(mode, case, Kernel(PATH, config, case.problem), key_splits=3)


def test_whoever_takes_a_part_leaves_the_same_bits() -> None:
    case = CASES["maxima that grow"]
    inputs = inputs_of(case)
    first, *others = (
        run(EmulatedDevice(mode), case, CAUSAL, inputs=inputs, key_splits=5, blocks=blocks)
        for mode, blocks in ((MODES[0], 1), *((mode, 3) for mode in MODES))
    )
    for other in others:
        np.testing.assert_array_equal(first.out, other.out)
        np.testing.assert_array_equal(first.lse, other.lse)


# One tile of rows with four, eight and ten words a lane, whose runs have four, two and one by the number of warps.
FEW = ForwardCase(seq_q=70, seq_kv=203, heads_q=1)
FEW_OF = {width: replace(FEW, head_dim=width) for width in (32, 64, 80)}


@pytest.mark.parametrize("blocks", [3, 5, 11])
@pytest.mark.parametrize("width", FEW_OF)
def test_runs_are_as_long_as_a_warps_share(width: int, blocks: int) -> None:
    case = FEW_OF[width]
    assert not FORWARD.why_wrong(
        "random", case, Kernel(PATH, config_of(32), case.problem), key_splits=16, blocks=blocks
    )


# Two tiles of rows, the second one cut short, and seven of keys.
CASE = replace(SOME, batch=1, heads_q=2, heads_kv=1, spread=12.0)
UNORDERED = "race.* is not ordered after the"
ANY = "race|^out|^lse|left|wrote|out of bounds|livelock|deadlock"
BUGS = {
    "a part is counted before it is there": Bug(
        "partials.cuh",
        "void leave(",
        "ptx::count_ordered(launch.arrivals + tile * launch.key_splits + part.number)",
        "atomicAdd(launch.arrivals + tile * launch.key_splits + part.number, 1)",
        says=UNORDERED,
    ),
    "one lane counts before the others have left theirs": Bug(
        "partials.cuh", "void leave(", "__syncwarp();", says=UNORDERED
    ),
    "a block waits for none": Bug("partials.cuh", "void bring_together(", "await(part);", says=ANY),
    "a block waits for one warp of a part": Bug("partials.cuh", "void await(", "kWarps", "1", ANY),
    "warps go on before all parts have come": Bug(
        "partials.cuh", "void bring_together(", "ptx::barrier_sync(kMeeting, kConsumerThreads + 32);", says=ANY
    ),
    "numbers of blocks that have not begun are waited for": Bug(
        "parts.cuh", "int next(", "first < launch.blocks", "first < 0", says="livelock"
    ),
    "a number is worked through twice": Bug(
        "parts.cuh", "int next(", "lost = before >= kTaken;", "lost = false;", says=ANY
    ),
    "counters are left": Bug("partials.cuh", "void put_all_back(", "launch.arrivals[at] = 0;", says="left"),
    "counters are put back by every block": Bug("partials.cuh", "void put_all_back(", "gridDim.x - 1", "0", says=ANY),
    "counters are put back before the others have gone": Bug(
        "partials.cuh", "void put_all_back(", "__syncwarp();", says=UNORDERED
    ),
    "parts lie over one another": Bug(
        "partials.cuh", "ptx::u64 word_of(", "static_cast<long long>(tile) * launch.key_splits", "tile", says=ANY
    ),
    "all heads leave theirs as the first": Bug(
        "partials.cuh", "int tile_at(", "work.batch * launch.heads + work.head", "work.batch * launch.heads", says=ANY
    ),
    "the last part is left out": Bug("partials.cuh", "void add(", "first + i < parts", "first + i < parts - 1"),
    "a part counts as its neighbour does": Bug(
        "partials.cuh", "void add(", "from + i * stride + to_state", "from + to_state", says=ANY
    ),
    "what there is so far is not rescaled": Bug("partials.cuh", "weigh(before, all, weights);", "rescale(o, weights);"),
    "its sum is not rescaled": Bug("partials.cuh", "weigh(before, all, weights);", "all.sum[1] *= weights[1];"),
    "parts are not rescaled": Bug("partials.cuh", "void weigh(", "ptx::ex2(is_far(all.offset[h]) ? far : near)", "1.f"),
    "a warp's share ends where it begins": Bug("partials.cuh", "const int last = begin", "warp + 1", "warp", says=ANY),
    "a run has a word alone": Bug("partials.cuh", "void bring_together(", "min(run, kWords - word)", "1", says=ANY),
    "columns are those of the lane beside": Bug("partials.cuh", "void store(", "lane % 4 * 2", "(lane ^ 1) % 4 * 2"),
    "keys of a part are those of the next one too": Bug(
        "parts.cuh", "static Part of(", "tiles * (number + 1) / part.count", "tiles", says=ANY
    ),
    "every part is a tile's first": Bug("parts.cuh", "vec4 told(", "number % launch.key_splits", "0", says="livelock"),
}


@cache
def with_bugs() -> Kernel:
    return planted(CAUSAL, "forward_sm90a.cu", BUGS.values())


def found(number: int) -> list[str]:
    """By mode, of few parts and of many, by one block and by several."""
    return [
        outcome(run, with_bugs(), mode, CASE, number, section=1, key_splits=parts, blocks=blocks)
        for parts, blocks in ((3, 2), (6, 1))
        for mode in MODES
    ]


def test_nothing_is_found_where_no_mistake_is_armed() -> None:
    assert not any(found(0))


@pytest.mark.parametrize("name", BUGS)
def test_a_planted_mistake_is_found_in_some_mode(name: str) -> None:
    said = found(1 + list(BUGS).index(name))
    assert any(re.search(BUGS[name].says, each) for each in said), said
