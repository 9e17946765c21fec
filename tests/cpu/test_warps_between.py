"""Blocks of warps that share rows: what lies between two of a place, and heads whose rows begin inside of sectors."""

import pytest

from attention.choose.lines import lines_of, shared_of, slots_of
from attention.choose.model import predict
from attention.choose.prediction import Prediction
from attention.choose.warps.dealt import Dealt, dealt
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
