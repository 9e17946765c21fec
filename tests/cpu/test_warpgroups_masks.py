"""What masks, unequal keys and an SM's port take of warpgroups."""

from dataclasses import replace

import pytest

from attention.choose.guesses import behind_the_diagonal, outgrown
from attention.choose.lengths import told
from attention.choose.model import predict
from attention.choose.scores import cost_of
from attention.choose.warpgroups.masks import mask_lines, mask_of_rows, mask_of_step
from attention.problem import AttentionProblem
from attention.tile import WarpgroupTile
from attention.variant import Config
from tests.cpu.warpgroup_tiles import H200, OURS, PLAIN, RATES, TILE, made, steps

BOOL, WIDE = replace(PLAIN, mask="bool"), replace(PLAIN, mask="float", mask_dtype="float32")
LONE = TILE._replace(mask_ahead=True)
PAIR = LONE._replace(share=2)
CONFIG = Config((("tile_keys", 64), ("warpgroups", 2), ("stages", 2), ("q_in_registers", 0)))
FEW = AttentionProblem(64, 32, 8, 1, 1024, 128, dtype="bfloat16", device="cuda", ranges=True)


def of_step(tile: WarpgroupTile, problem: AttentionProblem = BOOL) -> float:
    return sum(part.cycles for part in mask_of_step(tile, cost_of(problem), RATES))


def test_a_mask_is_handed_over_at_any_number_of_keys_alike_unless_its_words_are_wide() -> None:
    wider = PAIR._replace(keys=256)
    assert of_step(PAIR) == of_step(wider) > 0 and of_step(PAIR, WIDE) < of_step(wider, WIDE)
    assert mask_of_step(TILE, cost_of(BOOL), RATES) == ()


def of_rows(tile: WarpgroupTile, term: str) -> float:
    return next(part.cycles for part in mask_of_rows(tile, cost_of(BOOL), RATES) if part.term == term)


def test_a_block_by_itself_asks_for_its_rows_in_each_step_and_awaits_the_first_ones() -> None:
    assert of_step(LONE) > of_step(PAIR)
    lone, pair = (of_rows(tile, "first rows of a mask") for tile in (LONE, PAIR))
    assert RATES.dram_latency < lone and pair == 0


def test_rows_that_see_their_first_key_late_are_weighed_once_more_which_others_hide_of_three_warpgroups() -> None:
    two, wider, three = (
        of_rows(tile, "first keys behind a first tile")
        for tile in (PAIR, PAIR._replace(keys=2 * PAIR.keys), PAIR._replace(warpgroups=3))
    )
    assert two < wider < 2 * two and three < two


def test_bools_that_scores_begin_as_are_more_code_than_floats() -> None:
    floats = replace(PLAIN, mask="float")
    seeded, plain = (mask_lines(PAIR._replace(seeded=each), cost_of(BOOL)) for each in (True, False))
    assert seeded > plain == mask_lines(PAIR._replace(seeded=True), cost_of(floats)) > 0


def test_code_that_an_sm_does_not_hold_is_fetched_for_each_tile_of_rows_under_a_mask() -> None:
    two_tiles = AttentionProblem(16, 12, 12, 256, 256, 64, dtype="bfloat16", device="cuda")
    one_tile = replace(two_tiles, seq_q=128, seq_kv=128)
    config = Config((("tile_keys", 128), ("warpgroups", 2), ("stages", 2), ("q_in_registers", 0)))

    def dropped(problem: AttentionProblem) -> float:
        terms = predict(H200, problem, OURS, config).terms
        return sum(term.seconds for term in terms if term.term == "code that was dropped")

    assert dropped(replace(two_tiles, mask="bool")) > dropped(replace(two_tiles, mask="float")) > 0
    assert dropped(replace(one_tile, mask="bool")) == dropped(two_tiles) == 0


def test_steeper_heads_and_longer_tiles_outgrow_a_guess_more_often() -> None:
    assert 0 < outgrown(16, 64) < outgrown(16, 128) < 1
    assert outgrown(1, 4) < outgrown(1, 4096) == 1


def test_a_window_leaves_more_of_the_tiles_behind_the_diagonal() -> None:
    whole = AttentionProblem(1, 8, 8, 1024, 1024, 64, dtype="bfloat16", device="cuda", alibi=True)
    near = replace(whole, window=(64, -1))
    assert behind_the_diagonal(whole) == 0.5 < behind_the_diagonal(near) < 1


def test_two_warpgroups_search_their_first_tiles_side_by_side_but_where_an_edge_sets_them_apart() -> None:
    def first(problem: AttentionProblem, warpgroups: int) -> float:
        found = steps(TILE._replace(warpgroups=warpgroups), problem).rows.each
        return next(part.cycles for part in found if part.term == "masks of the first tile")

    def again(problem: AttentionProblem, warpgroups: int) -> float:
        return steps(TILE._replace(warpgroups=warpgroups), problem).together.cycles

    causal = replace(PLAIN, causal=True)
    assert again(PLAIN, 2) == first(PLAIN, 2) and again(PLAIN, 1) == again(PLAIN, 3) == 0
    assert 0 < again(causal, 2) < first(causal, 2)


def test_two_warpgroups_meet_a_diagonal_together_in_tiles_as_long_as_their_rows() -> None:
    def searched(tile_keys: int, causal: bool = True) -> float:
        config = made({"tile_keys": tile_keys, "warpgroups": 2, "stages": 2, "q_in_registers": 0})
        terms = predict(H200, replace(PLAIN, seq_q=256, seq_kv=256, causal=causal), OURS, config).terms
        return sum(term.seconds for term in terms if term.term == "masks of the first tile") / tile_keys

    assert searched(128) > 1.3 * searched(64)
    assert searched(128, causal=False) == pytest.approx(searched(64, causal=False), rel=0.05)


def test_slots_that_are_unevenly_full_end_one_after_another() -> None:
    even, uneven = told(FEW, (), (512,) * 64), told(FEW, (), (*(1024,) * 16, *(341,) * 48))
    seconds = [predict(H200, FEW, OURS, CONFIG, lengths=lengths) for lengths in (even, uneven)]
    assert seconds[1].seconds > 1.05 * seconds[0].seconds and seconds[1].bound_by == "tiles of unequal keys"


def test_rows_that_begin_inside_of_sectors_take_what_their_columns_say() -> None:
    few = AttentionProblem(4, 2, 2, 860, 860, 200, dtype="bfloat16", device="cuda")
    whole, inside, wider = (
        predict(H200, replace(few, head_dim=dim, head_dim_v=dim, scale=None), OURS, CONFIG).seconds
        for dim in (208, 216, 224)
    )
    assert whole < inside <= 1.02 * wider
