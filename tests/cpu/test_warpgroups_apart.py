"""Warpgroups of which some are idle: by themselves, as causality leaves others nothing, or as rows do not cross."""

from dataclasses import replace

import pytest

from attention.choose.model import predict
from attention.choose.warpgroups.dealt import idle_steps
from attention.variant import Config
from tests.cpu.warpgroup_tiles import H200, OURS, PLAIN, RATES, TILE, made, steps


def test_a_lone_warpgroup_hides_no_more_than_probes_saw():
    one, two = steps(TILE._replace(warpgroups=1)).keys.cycles, steps().keys.cycles
    hiding = steps(TILE._replace(warpgroups=1), rates=RATES._replace(ex2_beside=1.0, ffma_beside=1.0)).keys.cycles
    assert two / 2 < one < two and hiding < one


def test_a_lone_warpgroup_that_guesses_hides_what_stands_before_its_products_wait():
    def lost(keys: int, values: int) -> float:
        alone = TILE._replace(keys=keys, value_dim=values, warpgroups=1)
        searching, guessing = (steps(alone._replace(group=group)).keys.cycles for group in (1, 8))
        return guessing - searching

    assert lost(64, 256) == pytest.approx(RATES.held_latency)  # all of it
    assert lost(64, 256) < lost(64, 128) < lost(128, 128)


def test_rows_that_causality_ends_apart_cross_less_and_few_unequal_ones_end_later():
    def gain(batch: int, **asked: bool) -> float:
        short = replace(PLAIN, batch=batch, seq_q=256, seq_kv=256, **asked)
        axes = {"tile_keys": 64, "warpgroups": 2, "q_in_registers": 1}
        crossed, alone = (predict(H200, short, OURS, made({**axes, "stages": stages})).seconds for stages in (4, 2))
        return 1 - crossed / alone

    assert gain(64) > gain(64, causal=True) > 0 > gain(2, causal=True)


@pytest.mark.parametrize(
    ("warpgroups", "keys", "expected"),
    [
        (2, 128, (0,)),  # both see a tile's first key and its last
        (2, 64, (1,)),
        (3, 64, (1, 1)),
        (3, 96, (0, 1)),
        (3, 128, (0.5, 0.5)),
        (1, 128, ()),
    ],
)
def test_causality_leaves_warpgroups_nothing_to_do_where_tiles_lie_so(warpgroups, keys, expected):
    assert idle_steps(0, warpgroups, keys) == expected
    every = [sum(busy * times for busy, times in enumerate(idle_steps(5, warpgroups, keys), 1))]
    assert all(0 <= each <= warpgroups * (64 * warpgroups // keys + 1) for each in every)


@pytest.mark.parametrize(("keys", "expected"), [(128, 0), (144, 0), (80, 0.5), (64, 1)])
def test_of_few_tiles_of_rows_the_steps_are_their_own(keys, expected):
    # 220 queries are two tiles of 128 rows, whose last keys are in as many tiles of 128 or 144 for both warpgroups.
    assert idle_steps(0, 2, keys, 2, 220) == (expected,)


@pytest.mark.parametrize("keys", [64, 96, 128])
def test_steps_of_fewer_warpgroups_take_less_and_no_term_is_negative(keys):
    config = Config((("tile_keys", keys), ("warpgroups", 3), ("stages", 2), ("q_in_registers", 0)))
    for queries in (1000, 4096):
        causal = predict(H200, replace(PLAIN, seq_q=queries, seq_kv=queries, causal=True), OURS, config)
        assert all(each.seconds > 0 for each in causal.terms)
        assert causal.seconds < predict(H200, replace(PLAIN, seq_q=queries, seq_kv=queries), OURS, config).seconds


def test_warpgroups_without_rows_of_a_packed_tile_leave_the_tensor_cores_to_others():
    def gain(batch: int, queries: int) -> float:
        whole = replace(PLAIN, batch=batch, heads_kv=4, seq_q=64, seq_kv=4096)
        axes = {"tile_keys": 128, "warpgroups": 2, "stages": 2, "q_in_registers": 0}
        seconds = [predict(H200, replace(whole, seq_q=each), OURS, made(axes)).seconds for each in (64, queries)]
        return 1 - seconds[1] / seconds[0]

    # A tile has 16 queries of eight heads, and the last of four 2 of them or 10; of few tiles an SM has a whole one.
    assert gain(512, 50) > gain(64, 50) > 0.01
    assert gain(512, 58) < 0.002
    assert gain(2, 50) < 0.002
