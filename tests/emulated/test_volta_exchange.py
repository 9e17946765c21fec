"""Volta's p by either route: the kernel's own exchange, executed, hands each lane its row, and moves what it must."""

import numpy as np
import pytest

from notebooks.ladders import chained
from notebooks.ladders.exchange import exchange


@pytest.mark.parametrize("keys", (32, 64))
def test_both_routes_hand_a_lane_the_same_scores(keys: int) -> None:
    registers, shared = exchange(True, keys), exchange(False, keys)
    assert np.array_equal(registers.row, shared.row) and np.array_equal(registers.lane, shared.lane)
    by_half = [np.sort(each.key.reshape(32, -1, 8)) for each in (registers, shared)]
    assert np.array_equal(*by_half)


def test_a_lane_meets_the_four_keys_of_its_own_products_first_where_p_stays_in_registers() -> None:
    found = exchange(True)
    first = found.key[:, :, 0].reshape(32, -1)
    made = [set(np.flatnonzero((found.lane == lane) | (found.lane == lane ^ 2)) % 32) for lane in range(32)]
    assert all(set(keys) <= own for keys, own in zip(first, made, strict=True))
    assert (exchange(False).key[:, :, 0, 0] % 8 == 0).all()


def test_three_of_four_registers_of_an_operand_come_from_other_lanes() -> None:
    found = exchange(True)
    assert (found.words, found.words_received) == (16, 12)


def test_no_order_of_keys_spares_half_of_the_scores_the_way_to_another_lane() -> None:
    assert chained.moves("row") == chained.Moves(32, 32)
    assert chained.moves("col") == chained.Moves(32, 64)


def test_two_shuffles_do_where_neighbouring_keys_stay_together_and_four_where_they_do_not() -> None:
    assert chained.shuffles((0, 1, 4, 5, 2, 3, 6, 7)) == chained.shuffles(range(8)) == 2
    assert chained.shuffles((0, 2, 1, 3, 4, 6, 5, 7)) == 4
