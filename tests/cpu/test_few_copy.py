"""Copies that few warps of a block have, which the others pass with products."""

from attention.choose.rates import machine_of
from attention.choose.scores import cost_of
from attention.choose.warps.block import block_of
from attention.choose.warps.dealt import dealt
from attention.choose.warps.predicted import rates_of
from attention.problem import AttentionProblem
from attention.tile import WarpTile
from microbench.results.profile import Profile

H200 = Profile.load("h200-sxm-141gb")
RATES = rates_of(machine_of(H200), H200.sm_count)
PROBLEM = AttentionProblem(4, 32, 32, 4096, 4096, 144, dtype="bfloat16", device="cuda")
FEW = WarpTile(2, 4, 16, 32, 16, 144, 144, q_in_registers=True, ahead=1, key_span_bytes=32, value_span_bytes=32)
ALL = FEW._replace(key_span_bytes=128)


def cycles(tile: WarpTile, resident: int) -> float:
    work = dealt(PROBLEM, FEW, H200.sm_count).at_least.work
    return block_of(tile, cost_of(PROBLEM), work, resident, RATES).cycles


def test_copies_of_two_of_four_warps_hide_beside_products_of_another_block() -> None:
    assert cycles(FEW, 2) < cycles(ALL, 2)


def test_a_lone_block_waits_for_them_at_its_barrier() -> None:
    assert cycles(FEW, 1) == cycles(ALL, 1)
