"""What DRAM gives for a call: every byte once, some granules again, and what goes back to it meanwhile."""

from dataclasses import replace

import pytest

from attention.choose.coefficients.table import of
from attention.choose.lines import granules_of
from attention.choose.one_clock import BY_BOXES, BY_ROWS, IN_STEP, Missed, dram_of
from attention.choose.rates import DRAM, WRITE_BACK, WRITTEN_BACK, machine_of
from attention.problem import AttentionProblem
from microbench.results.profile import Profile

H200 = machine_of(Profile.load("h200-sxm-141gb"))
ROWS = 1 << 20
DECODE = AttentionProblem(16, 8, 4, 1, 16384, 80, dtype="bfloat16", device="cuda")


def given(
    problem: AttentionProblem,
    at_once: float = 1.0,
    missed: Missed = IN_STEP,
    l2_written: bool = False,
    rows: int = ROWS,
) -> float:
    """Bytes that it takes the time of, by the rate that such blocks have."""
    seconds = dram_of(H200, problem, rows, at_once, missed, l2_written).seconds
    return seconds * H200.value(DRAM) / (1 + missed.drifted)


def of_dim(dim: int) -> AttentionProblem:
    return replace(DECODE, head_dim=dim, head_dim_v=dim)


def once(dim: int) -> float:
    return ROWS * 4.0 * dim


@pytest.mark.parametrize("dim", [32, 64, 96, 128, 256])
def test_rows_of_whole_granules_come_once(dim: int) -> None:
    assert given(of_dim(dim)) == pytest.approx(once(dim))


@pytest.mark.parametrize("dim", [40, 72, 80, 104, 232])
def test_a_granule_that_two_heads_share_comes_again_where_many_blocks_run_for_long(dim: int) -> None:
    problem = of_dim(dim)
    few, many, most = (given(problem, at_once) for at_once in (0.01, 0.1, 0.2))
    assert once(dim) < few < many < most <= ROWS * 128 * granules_of(dim)
    assert given(replace(problem, heads_q=2, heads_kv=1)) == pytest.approx(once(dim))


@pytest.mark.parametrize(
    ("dim", "begun"), [(64, 0.0), (128, 0.0), (96, 1 / 2), (112, 3 / 4), (240, 3 / 4), (104, 7 / 8)]
)
def test_lines_that_two_heads_share_take_half_a_sector_more_where_blocks_keep_no_step(dim: int, begun: float) -> None:
    apart, beside = (given(of_dim(dim), 0.01, missed) for missed in (BY_ROWS, IN_STEP))
    assert apart - beside == pytest.approx(ROWS * 2 * begun * 32 / 2)
    of_one = replace(of_dim(dim), heads_q=2, heads_kv=1)
    assert given(of_one, 0.01, BY_ROWS) == pytest.approx(given(of_one, 0.01, BY_BOXES))
    assert given(of_one, 0.01, BY_BOXES) == given(of_one, 0.01)


def test_boxes_have_three_quarters_of_the_shared_granules_again() -> None:
    by_rows, by_boxes = (given(of_dim(104), 0.0, missed) for missed in (BY_ROWS, BY_BOXES))
    assert by_boxes - by_rows == pytest.approx(ROWS * 2 * (64 * granules_of(104) - 208) * 3 / 4)
    assert given(of_dim(96), 0.0, BY_BOXES) == pytest.approx(given(of_dim(96), 0.0, BY_ROWS))


def test_blocks_of_warps_that_keep_no_step_have_less_of_dram() -> None:
    drifted, in_step = (dram_of(H200, of_dim(128), ROWS, 0.0, missed, False) for missed in (BY_ROWS, IN_STEP))
    assert drifted.seconds == pytest.approx(in_step.seconds * (1 + of("drifted")))
    assert BY_BOXES.drifted == IN_STEP.drifted == 0


def test_what_others_wrote_goes_back_until_nothing_of_it_is_left() -> None:
    ratio, all_of_it = H200.value(WRITE_BACK), H200.value(WRITTEN_BACK)
    problem = of_dim(128)
    assert given(problem, l2_written=True, rows=1000) == pytest.approx(512_000 * (1 + ratio))
    assert given(problem, l2_written=True) == pytest.approx(once(128) + all_of_it)
