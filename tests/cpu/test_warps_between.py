"""Blocks of warps that share rows: what lies between two of a place, and heads whose rows begin inside of sectors."""

import pytest

from attention.choose.coefficients.table import STORED
from attention.choose.lines import lines_of, shared_of, slots_of
from attention.choose.model import predict
from attention.choose.prediction import Prediction
from attention.choose.rates import machine_of
from attention.choose.warps.dealt import Dealt, dealt
from attention.choose.warps.gathered import bytes_of, left
from attention.choose.warps.predicted import rates_of
from attention.choose.warps.waits import instructions_of
from attention.problem import AttentionProblem
from attention.variant import Config, by_path
from microbench.results.profile import Profile

H200 = Profile.load("h200-sxm-141gb")
SPLIT, PIPELINED = by_path("sm80/forward/split_keys"), by_path("sm80/forward/software_pipelined")


def decode(head_dim: int, heads: int = 8) -> AttentionProblem:
    """200 MB of K and V, of 32 heads in all."""
    keys = 200_000_000 // (32 * 4 * head_dim)
    return AttentionProblem(32 // heads, heads, heads, 1, keys, head_dim, dtype="bfloat16", device="cuda")


def config(head_dim: int, parts: int) -> Config:
    return Config((("warps", 4), ("tile_keys", 64 if head_dim <= 128 else 32), ("key_splits", parts)))


def ours(head_dim: int, parts: int) -> Prediction:
    return predict(H200, decode(head_dim), SPLIT, config(head_dim, parts))


def shared(head_dim: int, parts: int, heads: int = 8) -> Dealt:
    problem = decode(head_dim, heads)
    return dealt(problem, SPLIT.residents(problem, config(head_dim, parts)), H200.sm_count)


def test_memory_does_not_hide_what_lies_between_two_blocks_of_a_place():
    tile = SPLIT.residents(decode(128), config(128, 8))
    one_each, four_each = ours(128, 8), ours(128, 32)
    assert one_each.bound_by == four_each.bound_by == "Q, K, V and out from DRAM"
    assert four_each.seconds - one_each.seconds > 2 * instructions_of(tile) / H200.clock_hz


def test_an_even_number_of_heads_has_no_sector_sent_twice_and_an_odd_one_some():
    assert shared(200, 8).at_least.work.lines < shared(200, 8, heads=1).at_least.work.lines
    assert shared(192, 8).at_least.work.lines == shared(192, 8, heads=1).at_least.work.lines


@pytest.mark.parametrize("head_dim", [40, 72, 104, 200, 248])
@pytest.mark.parametrize("span_bytes", [32, 64, 128])
def test_spans_that_begin_with_a_sector_share_none(head_dim, span_bytes):
    assert shared_of(head_dim, span_bytes, from_sector=True) <= 0 < shared_of(head_dim, 32)
    assert slots_of(head_dim, span_bytes, from_sector=True) < slots_of(head_dim, span_bytes)
    assert lines_of(head_dim, span_bytes, from_sector=True) <= lines_of(head_dim, span_bytes)


@pytest.mark.parametrize("head_dim", [48, 64, 112, 256])
def test_rows_of_whole_sectors_begin_inside_of_none(head_dim):
    assert shared_of(head_dim, 32) == shared_of(head_dim, 32, from_sector=True) == 0
    assert slots_of(head_dim, 64) == slots_of(head_dim, 64, from_sector=True)


def test_the_busiest_place_of_causal_rows_has_whole_blocks():
    """Of 384 tiles in 264 places it has two, each with its begin and end: it had 1.45 of them."""
    problem = AttentionProblem(4, 32, 8, 180, 180, 128, dtype="bfloat16", device="cuda", causal=True)
    tile = SPLIT.residents(problem, config(128, 1))
    (stay,) = dealt(problem, tile, H200.sm_count).stays
    assert stay.times == 2 and stay.work.slices < dealt(problem, tile, H200.sm_count).at_least.work.slices


def test_blocks_of_an_sm_leave_their_parts_through_one_port():
    problem = AttentionProblem(8, 8, 8, 256, 256, 128, dtype="bfloat16", device="cuda")
    tile = SPLIT.residents(problem, config(128, 2))
    rates = rates_of(machine_of(H200), H200.sm_count)
    alone, beside = (left(tile, 64, 0.0, resident, rates)[0].cycles for resident in (1, 2))
    assert beside == 2 * alone == 2 * 1.25 * bytes_of(tile, 64) / STORED


def test_tiles_at_an_edge_are_loaded_whole():
    """Of 256 causal tokens 4 heads share 64 rows of 16 tokens, which see 4.5 slices of 32 keys in 2.5 tiles of 64."""
    problem = AttentionProblem(8, 32, 8, 256, 256, 128, dtype="bfloat16", device="cuda", causal=True)
    full = AttentionProblem(8, 32, 8, 256, 256, 128, dtype="bfloat16", device="cuda")
    works = [dealt(each, SPLIT.residents(each, config(128, 1)), 132).at_least.work for each in (problem, full)]
    assert works[0].loaded == pytest.approx(2.5 * 64 / (4.5 * 32)) and works[1].loaded == 1.0
    assert works[0].lines == pytest.approx(works[0].loaded * works[1].lines)


@pytest.mark.parametrize(("mask", "blocks"), [("none", 2), ("bool", 3)])
def test_narrow_rows_under_a_mask_leave_room_for_a_third_block(mask: str, blocks: int):
    problem = AttentionProblem(2, 8, 1, 3456, 3456, 96, dtype="float16", device="cuda", mask=mask)
    assert PIPELINED.residents(problem, Config((("warps", 4), ("tile_keys", 64)))).blocks == blocks
