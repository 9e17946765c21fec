"""What a ladder was promised, what its figures show, and what is read from the kernel's loop."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from attention.compare.cells import Cell
from attention.compare.results import Climb, Step
from attention.problem import AttentionProblem
from attention.variant import Config
from notebooks.ladders import figure_rungs, loop, promise
from notebooks.ladders.figure_rungs import Ceilings
from tests.cpu.attention_profiles import hopper_profile
from tests.cpu.listing import assemble
from tests.cpu.test_peer_results import timing

TILE = Config((("tile_keys", 128), ("warpgroups", 2), ("stages", 2), ("q_in_registers", 0)))
PROFILE = hopper_profile(wgmma_bf16_flops_per_clk_sm=4096.0, mufu_ex2_per_clk_sm=16.0, ffma_per_clk_sm=128.0)


def problem(head_dim: int = 128, causal: bool = True) -> AttentionProblem:
    return AttentionProblem(2, 16, 16, 2048, 2048, head_dim, dtype="bfloat16", causal=causal, device="cuda")


def test_overlap_hides_exponentials_for_as_long_as_products_take() -> None:
    assert promise.overlap(PROFILE, problem(64), TILE).gain == pytest.approx(2.0)
    assert promise.overlap(PROFILE, problem(128), TILE).gain == pytest.approx(1.5)
    assert promise.overlap(PROFILE, problem(256), TILE).gain == pytest.approx(1.25)


def test_lazy_rescaling_saves_a_multiplication_for_each_output_and_tile() -> None:
    products, _ = promise.cycles(PROFILE, problem(), TILE)
    assert promise.lazy(PROFILE, problem(), TILE).gain == pytest.approx(1 + 128 * 128 / 128 / products)


def test_a_causal_row_tile_works_through_the_keys_up_to_its_end_longest_first() -> None:
    work = promise.keys_in_order(problem(), TILE)
    assert len(work) == 2 * 16 * 16 and sum(work) == 2 * 16 * sum(range(1, 17)) and work[0] == 16 and work[-1] == 1
    assert set(promise.keys_in_order(problem(causal=False), TILE)) == {16}


def test_tiles_of_one_length_promise_nothing_to_a_counter_and_causal_ones_do() -> None:
    assert promise.dynamic(PROFILE, problem(causal=False), TILE).gain == 1.0
    assert promise.dynamic(PROFILE, problem(), TILE).gain > 1.0


@given(st.lists(st.integers(1, 50), min_size=1, max_size=60), st.integers(1, 9))
def test_taking_the_next_piece_ends_between_an_even_share_and_one_piece_more(work: list[int], units: int) -> None:
    even = sum(work) / units
    assert max(even, max(work)) <= promise.makespan(work, units) <= even + max(work)


def climb(*ideas: str) -> Climb:
    rungs = [Step((), timing("ours", 1000.0))]
    rungs += [Step((idea,), timing("ours", 1000.0 / (at + 2))) for at, idea in enumerate(ideas)]
    return Climb(Cell(problem()), TILE, tuple(rungs), ())


def test_the_figure_of_the_ladder_has_a_point_for_every_rung() -> None:
    climbs = [climb("turns", "lazy"), climb("lazy")]
    (axes,) = figure_rungs.rungs(climbs, {(): "0", ("turns",): "1", ("lazy",): "2"}).axes
    for line, each, places in zip(axes.lines, climbs, ([0, 1, 2], [0, 2]), strict=True):
        assert list(line.get_xdata()) == places
        assert list(line.get_ydata()) == pytest.approx([each.tflops(step) for step in each.rungs])
        assert max(line.get_ydata()) < axes.get_ylim()[1]
    assert [label.get_text() for label in axes.get_xticklabels()] == list("012")
    assert figure_rungs.rungs((), {}).axes


def test_the_figure_of_ceilings_has_a_bar_for_each_cell_and_a_mark_for_each_limit_within() -> None:
    cells = [Ceilings("a", 400, {"products": 800, "exponentials": 900}), Ceilings("b", 500, {"products": 3000})]
    (axes,) = figure_rungs.ceilings(cells, "", 2000).axes
    assert [bar.get_width() for bar in axes.patches] == [400, 500]
    marks = {each.get_label(): each.get_offsets().tolist() for each in axes.collections}
    assert marks == {"products": [[800, 0]], "exponentials": [[900, 0]]}


def test_the_loop_is_the_shortest_that_multiplies_and_exponentiates_and_branches_out_of_it_hide_nothing() -> None:
    # From 0x10 on: a branch over the two FMULs, one out of the loop, and the one that closes it; 0x80 is a longer one.
    body = ("HGMMA.64x128x16.F32.BF16 R24, gdesc[UR4], R24", "@!P1 BRA 0x50", "FMUL R3, R3, R2", "FMUL R4, R4, R2")
    out_of_it = "@P2 BRA 0x90"
    code = assemble("MUFU.EX2 R1, R1", *body, out_of_it, "MUFU.EX2 R5, R5", "@P0 BRA 0x10", "@P0 BRA 0x0", "EXIT")
    assert loop.innermost(code) == (1, 8) and loop.passed_over(code[1:8]) == {2, 3}
    with pytest.raises(ValueError, match="HGMMA"):
        loop.innermost(code[2:])
