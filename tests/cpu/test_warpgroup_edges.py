"""Tiles of keys that an edge meets are those of which a warpgroup's rows see some keys and not others."""

import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from attention.choose.warpgroups.edges import edges_of
from attention.problem import AttentionProblem

ROWS = 64  # of a warpgroup
SQUARE = AttentionProblem(1, 1, 1, 512, 512, 128, 128, "bfloat16", "cuda", causal=True)


def met(problem: AttentionProblem, tile_keys: int) -> float:
    """By asking each row of each tile: beside the first tile of those that the rows see, going down."""
    band, keys, found, groups = problem.band(), problem.seq_kv, 0, -(-problem.seq_q // ROWS)
    for first in range(0, problem.seq_q, ROWS):
        seen_by = [
            (
                0 if band.left is None else row + band.left,
                keys if band.right is None else min(keys, row + band.right + 1),
            )
            for row in range(first, first + ROWS)
        ]
        seen: list[bool] = []  # of each tile that some row sees from the last one down: whether all rows see all of it
        for begin in range(0, problem.seq_kv, tile_keys):
            end = min(begin + tile_keys, problem.seq_kv)
            if any(low < end and high > begin for low, high in seen_by):
                seen.append(all(low <= begin and high >= end for low, high in seen_by))
        found += sum(not whole for whole in seen[:-1])
    return found / groups


@given(st.sampled_from([64, 80, 96, 112, 128, 144, 160, 176]), st.integers(1, 9), st.integers(0, 40))
def test_causal_rows_meet_as_many_tiles_as_counted_one_by_one(tile_keys: int, groups: int, more: int) -> None:
    groups = min(groups, tile_keys // math.gcd(ROWS, tile_keys))  # behind these they lie alike
    problem = replace(SQUARE, seq_q=ROWS * groups, seq_kv=ROWS * groups + 16 * more, alignment="bottom_right")
    assert edges_of(problem, ROWS, tile_keys) == pytest.approx(met(problem, tile_keys))


@pytest.mark.parametrize(("tile_keys", "beside"), [(64, 0.0), (128, 0.0), (80, 0.6), (96, 1 / 3), (112, 3 / 7)])
def test_of_long_causal_rows_tiles_that_begin_with_warpgroups_meet_no_other_edge(tile_keys: int, beside: float) -> None:
    assert edges_of(replace(SQUARE, seq_q=16384, seq_kv=16384), ROWS, tile_keys) == pytest.approx(beside)


@pytest.mark.parametrize("tile_keys", [64, 80, 128, 176])
def test_a_window_meets_edges_on_both_sides(tile_keys: int) -> None:
    period = tile_keys * ROWS
    long = replace(SQUARE, seq_q=2 * period, seq_kv=2 * period, window=(299, 0))
    behind = replace(long, seq_q=period, alignment="bottom_right")  # rows that all have a left edge
    assert edges_of(long, ROWS, tile_keys) == pytest.approx(met(behind, tile_keys), abs=0.01)


def test_sequences_whose_own_lengths_are_not_alike_begin_anywhere() -> None:
    packed = replace(SQUARE, varlen=True, batch=4, tokens_q=400, tokens_kv=900, seq_kv=700, alignment="bottom_right")
    assert edges_of(packed, ROWS, 64) == pytest.approx(63 / 64)
    assert edges_of(replace(packed, tokens_kv=400, seq_kv=512), ROWS, 64) == 0.0
