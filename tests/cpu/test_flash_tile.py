"""What the model takes torch's FlashAttention-2 for: its tiles, the blocks that share keys, and its second kernel."""

from dataclasses import replace
from typing import Any

import pytest

from attention.choose.model import predict
from attention.choose.warps.gathered import combined
from attention.choose.warps.work import Rates
from attention.kernels.torch.common.flash_tile import in_parts, is_few, residents, tile
from attention.problem import AttentionProblem
from attention.variant import Config, by_path
from microbench.results.profile import Profile

PREFILL = AttentionProblem(4, 16, 16, 2048, 2048, 128, dtype="bfloat16", device="cuda")
DECODE = replace(PREFILL, batch=1, seq_q=1, seq_kv=8192)
CONFIG = Config()


def decode(seq_q: int = 1, **asked: Any) -> AttentionProblem:
    return AttentionProblem(1, 16, 16, seq_q, 8192, 128, dtype="bfloat16", device="cuda", **asked)


FLASH, H100 = by_path("sm80/forward/torch_flash"), Profile.load("h100-sxm-80gb")


def test_blocks_share_keys_as_long_as_blocks_are_few() -> None:
    few, many = (residents(replace(DECODE, batch=batch), CONFIG) for batch in (1, 12))
    assert few is not None and many is not None and few.key_splits > many.key_splits > 1
    assert not is_few(replace(DECODE, batch=64))


def test_a_second_kernel_adds_parts_and_is_paid_for() -> None:
    longer, short = DECODE, replace(DECODE, seq_kv=128)
    assert in_parts(longer) and not in_parts(short)
    (alone,), (first, second) = (
        [each.constant for each in predict(H100, problem, FLASH, CONFIG).terms if each.term == "launch"]
        for problem in (short, longer)
    )
    assert alone == first == "event_to_event_empty_kernel_ns" and second == "graph_kernel_interval_ns"
    assert tile(longer, CONFIG).kernels == 2


def test_many_queries_of_few_blocks_share_keys_too() -> None:
    """An H100 ran its split kernel and the one that adds parts, 43.8 us in all; by one block a tile we said 146."""
    few = AttentionProblem(1, 2, 1, 1024, 3328, 256, dtype="bfloat16", causal=True, alignment="bottom_right")
    assert in_parts(few) and predict(H100, few, FLASH, CONFIG).seconds < 60e-6
    assert not is_few(replace(few, batch=8)) and not in_parts(PREFILL)


def test_parts_that_a_second_kernel_adds_take_longer_the_more_rows_and_parts_there_are() -> None:
    """Blocks of a few rows each: of 2048 of them an H100 took 8.7 us, of 384 3.9."""
    tile, rates = residents(DECODE, CONFIG), Rates(*[1.0] * len(Rates._fields))
    assert tile is not None

    def cycles(rows: float, parts: int) -> float:
        return sum(each.cycles for each in combined(tile, rows, parts, 0.0, rates))

    assert cycles(1, 2) == cycles(4, 2) < cycles(8, 2) < cycles(8, 3)


def test_a_query_shares_its_tile_with_those_of_its_group() -> None:
    grouped = residents(replace(DECODE, heads_kv=4), CONFIG)
    assert grouped is not None and grouped.group == 4


def test_few_rows_in_large_tiles_take_as_long_as_many() -> None:
    few, many = (predict(H100, replace(DECODE, batch=64, seq_q=rows), FLASH, CONFIG).seconds for rows in (2, 128))
    assert 0.9 * many < few <= many


def test_parts_beyond_a_window_are_empty() -> None:
    windowed = decode(window=(4095, -1), alignment="bottom_right")
    whole, half = (residents(each, CONFIG) for each in (DECODE, windowed))
    assert whole and half and half.key_splits == pytest.approx(whole.key_splits / 2, abs=1)


def test_several_queries_beside_ranges_of_keys_are_packed_and_share_no_keys() -> None:
    assert not in_parts(decode(seq_q=8, ranges=True)) and in_parts(decode(ranges=True))


def test_the_largest_head_dims_have_tiles_of_their_own() -> None:
    found = [residents(replace(PREFILL, head_dim=dim, head_dim_v=dim), CONFIG) for dim in (192, 256)]
    assert [each.rows for each in found if each] == [128, 64]


@pytest.mark.parametrize("head_dim", [64, 96, 128])
def test_128_causal_tokens_take_it_longer_than_rates_alone_say(head_dim):
    """It took 11.1 us of an H100 where rates alone said 5.3, and was picked for it."""
    short = replace(PREFILL, batch=8, heads_q=8, heads_kv=8, seq_q=128, seq_kv=128, head_dim=head_dim, causal=True)
    assert predict(H100, short, FLASH, CONFIG).seconds > 8e-6


def test_long_causal_calls_wait_for_the_longest_rows_that_begin_last():
    full = predict(H100, PREFILL, FLASH, CONFIG).seconds
    causal = predict(H100, replace(PREFILL, causal=True), FLASH, CONFIG).seconds
    assert full / 2 < causal < full
