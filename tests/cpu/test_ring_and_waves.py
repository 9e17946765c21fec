"""Keys that come late for a ring's place, and what a wave that is not full takes at least."""

import pytest

from attention.choose.model import predict
from attention.choose.prediction import Term
from attention.choose.scores import ScoreCost, cost_of
from attention.choose.warpgroups.ring import late_of_pair, late_of_ring
from attention.choose.waves import of_waves
from attention.problem import AttentionProblem
from attention.tile import WarpgroupTile
from tests.cpu.warpgroup_tiles import H200, OURS, RATES, made

BOXED = WarpgroupTile(64, 2, 96, 96, q_in_registers=True, key_panel=32, value_panel=32)
DRAM = Term("Q, K, V and out from DRAM", "memory", 100e-6, "dram_bandwidth_bytes_per_s", 4.5e12)

PLAIN, WITH_ALIBI = (
    cost_of(AttentionProblem(2, 4, 4, 1024, 1024, 128, dtype="bfloat16", device="cuda", **features))
    for features in ({}, {"alibi": True})
)


def late(tile: WarpgroupTile = BOXED, step: float = 1000.0, readers: int = 1, cost: ScoreCost = PLAIN) -> float:
    return late_of_ring(tile, cost, step, readers, RATES).cycles


def test_short_steps_wait_for_a_place_that_is_filled_anew_and_long_ones_do_not() -> None:
    assert late() > late(step=1100.0) >= 0.0 and late(step=4000.0) == 0.0


def test_more_boxes_come_later_and_a_longer_ring_waits_less() -> None:
    assert late() > late(BOXED._replace(key_panel=96, value_panel=96))
    assert late() > late(BOXED._replace(stages=4))


def test_rows_of_a_mask_come_late_to_short_steps_of_a_pair() -> None:
    pair = BOXED._replace(mask_ahead=True, share=2)
    assert late_of_pair(pair, 1300.0, RATES).cycles > late_of_pair(pair, 2000.0, RATES).cycles > 0.0
    assert late_of_pair(pair, 2600.0, RATES).cycles == 0.0
    assert late_of_pair(pair._replace(share=1), 1300.0, RATES).cycles == 0.0
    assert late_of_pair(pair._replace(value_dim=64), 1300.0, RATES).cycles == 0.0


def test_keys_that_others_have_brought_come_sooner() -> None:
    assert late(readers=8) < late()


@pytest.mark.parametrize("blocks", [132, 100, 264])
def test_whole_waves_and_a_lone_one_take_what_dram_takes(blocks: int) -> None:
    assert of_waves(blocks, 132, 50e-6, DRAM) is None


def test_the_last_wave_takes_no_less_than_one_block_by_itself() -> None:
    found = of_waves(142, 132, 50e-6, DRAM)
    assert found is not None and found.seconds == pytest.approx(100e-6 * 132 / 142 + 50e-6)
    assert of_waves(142, 132, 5e-6, DRAM) is None


def test_waves_are_of_rows_whose_keys_are_more_than_a_ring_holds() -> None:
    """1024 tiles of rows are 7.8 waves; of 77 keys the next rows' have come before a wave begins."""
    long, short = (AttentionProblem(32, 32, 32, 1, keys, 256, dtype="bfloat16", device="cuda") for keys in (599, 77))
    config = made({"tile_keys": 64, "warpgroups": 2, "stages": 2, "q_in_registers": 0})
    of_long, of_short = ({term.term for term in predict(H200, each, OURS, config).terms} for each in (long, short))
    assert "waves of like blocks" in of_long and "waves of like blocks" not in of_short


def test_keys_that_are_given_back_behind_a_softmax_come_later() -> None:
    short, long = BOXED._replace(keys=64, value_dim=128), BOXED._replace(keys=112, value_dim=128)
    assert late(short, 400.0, 9, WITH_ALIBI) > late(short, 400.0, 9)
    assert late(long, 400.0, 9, WITH_ALIBI) == late(long, 400.0, 9)  # ptxas gives K of so many back before it
