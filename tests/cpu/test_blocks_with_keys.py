"""Blocks that share a tile of rows' keys: how many have some, and what those without cost."""

from dataclasses import replace
from statistics import fmean

import pytest
from hypothesis import given
from hypothesis import strategies as st

from attention.choose.model import predict
from attention.choose.warps.dealt import _parts_of_rows, dealt
from attention.problem import AttentionProblem
from attention.variant import Config, by_path
from microbench.results.profile import Profile

H200 = Profile.load("h200-sxm-141gb")
OURS = by_path("sm80/forward/split_keys")
SQUARE = AttentionProblem(4, 16, 16, 512, 2048, 128, dtype="bfloat16", device="cuda")


def config(key_splits: int) -> Config:
    return Config((("warps", 4), ("tile_keys", 64), ("key_splits", key_splits), ("key_stages", 0)))


@given(st.integers(1, 64), st.integers(1, 40), st.integers(0, 40), st.integers(0, 40))
def test_parts_of_a_triangle_or_of_a_band_are_counted_exactly(parts: int, least: int, steps: int, full: int) -> None:
    tiles = [*range(least, least + steps + 1), *[least + steps] * full]
    parts = min(parts, max(tiles))  # no more than the longest has tiles
    exact = fmean(min(parts, each) for each in tiles)
    assert _parts_of_rows(parts, max(tiles), min(tiles), fmean(tiles)) == pytest.approx(exact)


@pytest.mark.parametrize("asked", [{"causal": True}, {"causal": True, "window": (128, 0)}])
def test_no_block_without_keys_counts_as_one_that_has_some(asked: dict[str, object]) -> None:
    problem = replace(SQUARE, **asked)
    tile = OURS.residents(problem, config(4))
    assert tile is not None
    of_rows = [min(4, each + 1, 3 if "window" in asked else 8) for each in range(8)]
    assert dealt(problem, tile, 132).blocks == 64 * sum(of_rows)


def test_blocks_that_all_see_alike_come_in_waves_and_others_do_not() -> None:
    tile = OURS.residents(SQUARE, config(1))
    assert tile is not None
    assert dealt(SQUARE, tile, 132).alike and not dealt(replace(SQUARE, causal=True), tile, 132).alike


def test_parts_of_a_second_round_fill_the_sms_that_were_first_and_whole_tiles_spread() -> None:
    problem = replace(SQUARE, batch=1, heads_q=40, heads_kv=40)  # 320 tiles of rows
    few = replace(problem, heads_q=20, heads_kv=20)
    parts, whole = OURS.residents(few, config(2)), OURS.residents(problem, config(1))
    assert parts is not None and whole is not None
    of_parts, of_whole = dealt(few, parts, 132), dealt(problem, whole, 132)
    assert of_parts.blocks == of_whole.blocks == 320 and of_parts.places == 264
    assert [each.resident for each in of_parts.stays] == [2, 2]
    assert [each.resident for each in of_whole.stays] == [2, 1]


def test_ever_more_blocks_without_keys_take_ever_longer() -> None:
    few = replace(SQUARE, seq_q=1, seq_kv=128)
    seconds = [predict(H200, few, OURS, config(each)).seconds for each in (2, 16, 64)]
    assert seconds == sorted(seconds) and seconds[-1] > 1.5 * seconds[0]
