"""Few unequal tiles of rows, dealt longest first: what the busiest unit gets more than the mean."""

import heapq
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from attention.choose.coefficients.table import of
from attention.choose.lengths import counted
from attention.choose.longest_first import unevenness
from attention.choose.warpgroups.dealt import dealt
from attention.kernels.common.family import section_of
from attention.problem import AttentionProblem

CAUSAL = AttentionProblem(2, 2, 2, 15062, 15062, 128, dtype="bfloat16", device="cuda", causal=True)


def one_by_one(heads: int, queries: int, tile_rows: int, units: int, section: int = 0) -> float:
    """The same with each tile given to whom ends first, longest first in each section of heads."""
    ends = sorted((min(queries, first + tile_rows) for first in range(0, queries, tile_rows)), reverse=True)
    widths = [min(section or heads, heads - at) for at in range(0, heads, section or heads)]
    sizes = [end for width in widths for end in ends for _ in range(width)]
    around = of("keys_around_rows")
    loads = [(0.0, 0)] * units
    for size in sizes:
        end, tiles = loads[0]
        heapq.heapreplace(loads, (end + size + around, tiles + 1))
    end, tiles = max(loads)
    return max(1.0, (end - around * tiles) * units / sum(sizes))


@given(st.integers(1, 6), st.integers(2, 40), st.integers(2, 30))
def test_rounds_are_near_what_tiles_one_by_one_give(heads, tiles, units):
    problem = replace(CAUSAL, batch=1, heads_q=heads, heads_kv=heads, seq_q=tiles * 64, seq_kv=tiles * 64)
    found = unevenness(problem, 64, units)
    assert (found is None) == (heads * tiles <= units)
    assert found is None or 1 <= found.over_mean <= 1.35 * one_by_one(heads, tiles * 64, 64, units)


@pytest.mark.parametrize(("tile_rows", "more"), [(192, 1.08), (128, 1.03)])
def test_few_tiles_leave_the_busiest_with_more(tile_rows, more):
    found = unevenness(CAUSAL, tile_rows, 132)
    assert found is not None and more < found.over_mean < more + 0.03
    assert found.over_mean == pytest.approx(one_by_one(4, 15062, tile_rows, 132), abs=0.02)


def test_equal_tiles_that_fill_no_whole_round_come_in_one_more():
    found = unevenness(replace(CAUSAL, batch=1, causal=False), 5021, 4)
    assert found is not None and found.over_mean == pytest.approx(2 * 4 / 6, rel=1e-3) and found.tiles == 2


def test_the_last_section_of_heads_begins_late():
    """An H200 took 50 us for these 512 tiles, for which the mean and half of a short one are 34."""
    problem = replace(CAUSAL, batch=128, heads_q=1, heads_kv=1, seq_q=489, seq_kv=489, head_dim=80, head_dim_v=80)
    found = unevenness(problem, 128, 264)
    assert found is not None
    assert found.over_mean == pytest.approx(one_by_one(128, 489, 128, 264, section_of(problem)), rel=0.03)
    assert found.over_mean > 1.3 * one_by_one(128, 489, 128, 264)


def test_of_many_tiles_the_last_sections_alone_are_dealt():
    many = replace(CAUSAL, batch=32, heads_q=32, heads_kv=32, seq_q=512, seq_kv=512)
    found = unevenness(many, 128, 132)
    assert found is not None and 1.0 < found.over_mean < 1.1
    assert found.over_mean == pytest.approx(one_by_one(1024, 512, 128, 132, section_of(many)), rel=0.02)


def test_a_lone_longest_tile_of_rows_is_all_that_its_sm_works_through():
    lone = replace(CAUSAL, batch=1, heads_q=7, heads_kv=1, seq_q=3201, seq_kv=3201)
    assert dealt(lone, 128, 112, 132)[:2] == (29, 1) and dealt(lone, 128, 128, 132)[:2] == (26, 1)


def test_the_busiest_sm_of_few_works_through_more_than_its_share():
    one = dealt(CAUSAL, 192, 80, 132)
    busiest = unevenness(CAUSAL, 192, 132)
    assert busiest is not None and one.rows == busiest.tiles
    assert one.keys == pytest.approx(busiest.over_mean * one.in_all / 132)
    many = replace(CAUSAL, batch=16)
    assert dealt(many, 192, 80, 132).keys < 1.01 * dealt(many, 192, 80, 132).in_all / 132


# Packed, without causality: 64, 3700, 1024 and 3906 keys, four heads of head dim 96.
PACKED = AttentionProblem(
    4, 4, 4, 3906, 3906, 96, dtype="bfloat16", device="cuda", varlen=True, tokens_q=8694, tokens_kv=8694
)
LENGTHS = counted((64, 3700, 1024, 3906), (64, 3700, 1024, 3906))


def in_that_order(tile_rows):
    loads = [0.0] * 132
    sizes = [keys for keys in (64, 3700, 1024, 3906) for _ in range(4 * -(-keys // tile_rows))]
    for size in sizes:
        heapq.heapreplace(loads, loads[0] + size)
    return max(loads) * 132 / sum(sizes)


@pytest.mark.parametrize("tile_rows", [128, 192])
def test_packed_tiles_of_few_long_sequences_come_in_rounds(tile_rows):
    """Of 192 rows in two rounds of the longest, 1.5 times the mean; of 128 nearly evenly."""
    found = unevenness(PACKED, tile_rows, 132, LENGTHS)
    assert found is not None and found.over_mean == pytest.approx(in_that_order(tile_rows), rel=0.03)
    share = dealt(PACKED, tile_rows, 96, 132, LENGTHS)
    assert share.keys == pytest.approx(found.over_mean * share.in_all / 132)


def test_of_tiles_dealt_by_lengths_a_head_follows_the_other_and_who_comes_last_is_late():
    lengths = (1408, 64, 640, 3072)
    problem = replace(PACKED, seq_q=3072, seq_kv=3072, tokens_q=5184, tokens_kv=5184)
    late, early = (unevenness(problem, 128, 132, counted(each, each)) for each in (lengths, lengths[::-1]))
    assert late is not None and early is not None
    assert late.over_mean == pytest.approx(35 * 132 / 2892, rel=0.1)  # 24 tiles of keys behind 11
    assert early.over_mean < late.over_mean


def test_of_causal_ones_dealt_by_lengths_the_first_sequence_comes_last():
    """As of b-77, where 228 tiles of a long sequence came behind 1024 short ones."""
    short = (384, 128, 842, 768, 64, 384, 453, 128, 452, 583)
    tokens = sum(short) + 3906
    causal = replace(PACKED, batch=11, causal=True, heads_q=8, heads_kv=8, tokens_q=tokens, tokens_kv=tokens)
    late, early = (unevenness(causal, 128, 132, counted(each, each)) for each in ((3906, *short), (*short, 3906)))
    assert late is not None and early is not None and 1.0 < early.over_mean < late.over_mean


def test_many_packed_tiles_few_and_causal_slots_are_not_dealt_one_by_one():
    lone = counted((3906,), (3906,))
    slots = replace(CAUSAL, ranges=True)
    assert unevenness(slots, 128, 132, counted((15062, 64), (15062, 64))) is None
    assert unevenness(PACKED, 128, 132, lone) is None
    assert unevenness(PACKED, 128, 132, counted((3906,) * 40, (3906,) * 40)) is None


@given(st.sampled_from((2, 4, 8, 16)), st.integers(1, 40), st.integers(2, 30))
def test_tiles_that_heads_of_a_group_share_are_as_long_as_fewer_queries_of_one(group: int, tiles: int, units: int):
    queries = tiles * 64 // group
    one = replace(CAUSAL, batch=1, heads_q=3, heads_kv=3, seq_q=queries, seq_kv=queries)
    shared = replace(one, heads_q=3 * group)
    assert unevenness(shared, 64, units, group=group) == unevenness(one, 64 // group, units)
