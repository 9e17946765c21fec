"""Blocks of unequal keys that share DRAM: no sooner than DRAM allows, nor than the longest one's own pace."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from attention.choose.unlike import seconds_of_all

OWN, SHARED = 1e-6, 2e-8
BLOCKS = st.lists(st.tuples(st.integers(1, 40), st.integers(1, 200)), min_size=1, max_size=6)


@given(blocks=BLOCKS, places=st.integers(1, 300))
def test_all_take_no_less_than_dram_and_the_longest_alone(blocks: list[tuple[int, int]], places: int) -> None:
    total, longest = sum(many * slices for many, slices in blocks), max(slices for _, slices in blocks)
    found = seconds_of_all(blocks, places, OWN, SHARED)
    assert found >= total * SHARED * (1 - 1e-9)
    if sum(many for many, _ in blocks) <= places:
        assert found >= longest * OWN * (1 - 0.1)  # its time is summed up in steps


def test_equal_blocks_take_what_dram_takes_where_they_are_many_and_their_own_pace_where_they_are_few() -> None:
    many, few = (seconds_of_all([(count, 100)], 264, OWN, SHARED) for count in (200, 10))
    assert many == pytest.approx(200 * 100 * SHARED)
    assert few == pytest.approx(100 * OWN)


def test_one_long_block_among_short_ones_leaves_dram_idle() -> None:
    alike = seconds_of_all([(100, 100)], 264, OWN, SHARED)
    unlike = seconds_of_all([(99, 50), (1, 5050)], 264, OWN, SHARED)
    assert unlike > 20 * alike


def test_more_blocks_for_the_same_keys_even_the_end_out() -> None:
    seconds = [
        seconds_of_all([(8 * split, 6400 / split), (8 * split, 800 / split)], 264, OWN, SHARED) for split in (1, 4)
    ]
    assert seconds[1] < seconds[0] / 2
