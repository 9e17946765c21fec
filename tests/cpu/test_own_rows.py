"""Warps with rows of their own: what blocks that may share keys ask of a slice, and what hidden keys cost a panel."""

import pytest

from attention.choose.coefficients.table import of
from attention.choose.rates import machine_of
from attention.choose.scores import cost_of
from attention.choose.warps.block import block_of
from attention.choose.warps.predicted import rates_of
from attention.choose.warps.work import Work
from attention.problem import AttentionProblem
from attention.tile import WarpTile
from microbench.results.profile import Profile

PROBLEM = AttentionProblem(1, 2, 2, 4096, 4096, 96, dtype="bfloat16", device="cuda")
TILE = WarpTile(1, 4, 16, 64, 16, 96, 96, q_in_registers=True, ahead=1)
SLICES = 40.0


def waited(tile: WarpTile, hidden: float, term: str = "instructions of tiles") -> float:
    rates = rates_of(machine_of(Profile.load("h200-sxm-141gb")), 132)
    parts = block_of(tile, cost_of(PROBLEM), Work(SLICES, hidden, 4, 4.0, 0.0), 1, rates).parts()
    return sum(each.cycles for each in parts if each.term == term)


def test_a_slice_asks_if_its_warp_has_rows_where_blocks_may_share_keys() -> None:
    may_share = TILE._replace(threads=128)
    assert waited(TILE, 0.0) == 0.0
    assert waited(may_share, 0.0) == pytest.approx(SLICES * of("idle_instructions"))
    assert waited(may_share, 4.0) - waited(may_share, 0.0) == pytest.approx(4 * of("idle_hidden_instructions"))


def test_flash_attention_2_asks_no_slice() -> None:
    assert not TILE._replace(threads=128, pipelined=False).asks_for_idle
    assert waited(TILE._replace(threads=128, pipelined=False), 0.0) == 0.0


def test_of_hidden_keys_each_panel_but_the_first_has_instructions_of_its_own() -> None:
    assert waited(TILE, 4.0) == 0.0
    assert waited(TILE._replace(warp_rows=32), 4.0) == pytest.approx(4 * of("hidden_panel_instructions"))
