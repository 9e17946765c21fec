import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from attention.choose.model import predict
from attention.choose.prediction import Efficiency, Unpredicted
from attention.choose.shares import share_of_busiest
from attention.problem import AttentionProblem
from attention.tile import Demand, Tile
from attention.variant import Config, Variant, by_path
from tests.cpu.attention_profiles import hopper_profile, host_profile

OURS = by_path("host/forward/tiled_online_softmax")
TILE = Config((("block_q", 64), ("block_kv", 64)))
LONG = AttentionProblem(1, 8, 8, 2048, 2048, 64)


def toy(*demands: Demand, edge: tuple[Demand, ...] = (), rows: int = 4, columns: int = 4) -> Variant:
    tile = Tile(rows, columns, rows, columns, demands, edge)
    return Variant("toy", "smscope", ("host",), lambda *_: None, tile=lambda *_: tile)


def seconds_of(prediction, name):
    return next(term.seconds for term in prediction.terms if term.term == name)


@given(
    seq_q=st.integers(1, 70),
    seq_kv=st.integers(1, 70),
    heads=st.integers(1, 5),
    steps=st.integers(1, 4),
    row_step=st.integers(1, 9),
    column_step=st.integers(1, 9),
    units=st.integers(1, 7),
    causal=st.booleans(),
)
def test_the_busiest_unit_has_no_less_than_its_share_and_no_less_than_the_longest_tile_row(
    seq_q, seq_kv, heads, steps, row_step, column_step, units, causal
):
    rows, columns = steps * row_step, column_step * 3
    problem = AttentionProblem(1, heads, heads, seq_q, seq_kv, 8, causal=causal)
    share = share_of_busiest(problem, Tile(rows, columns, row_step, column_step, ()), units)
    costs = []
    for first in range(0, seq_q, rows):
        cost = 0
        for step in range(first, min(first + rows, seq_q), row_step):
            seen = min(seq_kv, step + row_step) if causal else seq_kv
            cost += row_step * math.ceil(seen / column_step) * column_step
        costs.append(cost / (rows * columns))
    assert share.tiles >= max(costs) - 1e-9 and share.tiles >= heads * sum(costs) / units - 1e-9
    assert share.tiles <= heads * sum(costs) / units + max(costs) + 1e-9
    assert share.busy_units == min(units, heads * len(costs))


def test_a_window_costs_the_columns_that_it_shows():
    problem = AttentionProblem(1, 1, 1, 1024, 1024, 64, window=(127, -1), causal=True)
    full = AttentionProblem(1, 1, 1, 1024, 1024, 64)
    tile = Tile(64, 64, 64, 64, ())
    # Rows 64 n to 64 n + 63 see from 127 keys before their first to their last: three columns of tiles, fewer at first.
    assert share_of_busiest(problem, tile, 1).tiles == 1 + 2 + 14 * 3
    assert share_of_busiest(full, tile, 1).tiles == 16 * 16
    nothing = AttentionProblem(1, 1, 1, 128, 64, 64, causal=True, alignment="bottom_right")
    assert share_of_busiest(nothing, tile, 1).tiles == 1


@pytest.mark.parametrize("causal", [False, True])
def test_a_sequence_of_any_length_is_weighed_by_some_of_its_tile_rows(causal):
    longest = 2**31 - 1
    problem = AttentionProblem(1, 1, 1, longest, longest, 64, causal=causal)
    share = share_of_busiest(problem, Tile(256, 512, 1, 1, ()), 1)
    assert share.tiles == pytest.approx(problem.scores / (256 * 512), rel=1e-5) and share.rows == 2**23


def test_each_tile_row_pays_for_its_edge_once():
    fma, edge = Demand("fma", "tile", 480e9, "fma_f32_per_s"), Demand("Q and out", "edge", 24e9, "exp_f32_per_s")
    problem = AttentionProblem(1, 1, 1, 40, 400, 8)  # ten tile rows for four cores: three for the busiest
    inside, both = (predict(host_profile(), problem, toy(fma, edge=each), Config()) for each in ((), (edge,)))
    assert seconds_of(both, "Q and out") == pytest.approx(3 * 2.0)
    assert both.seconds == pytest.approx(inside.seconds + 3 * 2.0)


def test_links_of_a_chain_follow_each_other_and_are_no_work_of_their_own():
    fma = Demand("fma", "one", 480e9, "fma_f32_per_s")
    links = tuple(Demand(f"link {n}", "one", 240e9, "fma_f32_per_s", chains=("turns", "others")[:n]) for n in (1, 2, 1))
    problem = AttentionProblem(1, 4, 4, 4, 4, 8)
    alone, chained = (predict(host_profile(), problem, toy(*of), Config()) for of in ((fma,), (fma, *links)))
    assert chained.seconds == pytest.approx(1.5 * alone.seconds) and chained.bound_by == "turns"
    assert chained.unhidden_seconds == alone.unhidden_seconds
    turns, others = chained.terms[1:]
    assert [each.term for each in turns.links] == ["link 1", "link 2", "link 1"]
    assert others.seconds == pytest.approx(alone.seconds / 2) and others.constants == 2 * ("fma_f32_per_s",)


def test_terms_of_one_phase_overlap_and_phases_follow():
    fma, exp = (Demand("fma", "one", 480e9, "fma_f32_per_s"), Demand("exp", "one", 24e9, "exp_f32_per_s"))
    later = Demand("exp again", "two", 24e9, "exp_f32_per_s")
    problem = AttentionProblem(1, 4, 4, 4, 4, 8)
    prediction = predict(host_profile(), problem, toy(fma, exp, later), Config())
    assert prediction.seconds == pytest.approx(4.0 + 2.0) and prediction.bound_by == "fma"
    assert prediction.unhidden_seconds == pytest.approx(4.0 + 2.0 + 2.0)


def test_one_busy_core_has_the_rate_that_one_core_was_measured_at():
    demand = Demand("fma", "one", 130e9, "fma_f32_per_s")
    alone = predict(host_profile(), AttentionProblem(1, 1, 1, 4, 4, 8), toy(demand), Config())
    assert alone.seconds == pytest.approx(1.0) and alone.terms[0].constant == "fma_f32_one_thread_per_s"
    together = predict(host_profile(), AttentionProblem(1, 4, 4, 4, 4, 8), toy(demand), Config())
    assert together.seconds == pytest.approx(130 / 120) and together.terms[0].constant == "fma_f32_per_s"


def test_a_rate_per_clock_and_sm_is_multiplied_by_the_clock():
    demand = Demand("exp", "one", 16 * 1.7e9, "mufu_ex2_per_clk_sm")
    problem = AttentionProblem(1, 1, 1, 4, 4, 8, dtype="bfloat16")
    profile = hopper_profile(event_to_event_empty_kernel_ns=None)
    assert predict(profile, problem, toy(demand), Config()).seconds == pytest.approx(1.0)


def test_a_launch_is_part_of_a_call_where_the_profile_knows_what_it_takes():
    demand = Demand("exp", "one", 16 * 1.7e9, "mufu_ex2_per_clk_sm")
    problem = AttentionProblem(1, 1, 1, 4, 4, 8, dtype="bfloat16")
    profile = hopper_profile(event_to_event_empty_kernel_ns=5e8)
    assert predict(profile, problem, toy(demand), Config()).seconds == pytest.approx(1.5)


@pytest.mark.parametrize(
    ("resident", "constant"), [(1024, "l1"), (512 * 1024, "l2"), (8 << 20, "l3"), (1 << 30, "dram")]
)
def test_memory_is_charged_at_the_nearest_level_that_holds_it(resident, constant):
    demand = Demand("bytes", "one", 1.0, "memory", resident)
    problem = AttentionProblem(1, 4, 4, 4, 4, 8)
    prediction = predict(host_profile(), problem, toy(demand), Config())
    assert prediction.terms[0].constant == f"{constant}_bandwidth_bytes_per_s"


def test_a_level_that_was_not_measured_is_passed_over():
    demand = Demand("bytes", "one", 1.0, "memory", 1024)
    profile = host_profile(l1_size_bytes=None, l2_size_bytes=None, l3_bandwidth_bytes_per_s=None)
    prediction = predict(profile, AttentionProblem(1, 4, 4, 4, 4, 8), toy(demand), Config())
    assert prediction.terms[0].constant == "dram_bandwidth_bytes_per_s"


def test_a_missing_constant_is_named_and_nothing_is_guessed():
    with pytest.raises(Unpredicted, match="fma_f32_per_s"):
        predict(host_profile(fma_f32_per_s=None), LONG, OURS, TILE)
    closed = Variant("closed", "torch", ("host",), lambda *_: None)
    with pytest.raises(Unpredicted, match="inside"):
        predict(host_profile(), LONG, closed, Config())


def test_twice_the_rate_halves_its_term():
    slow = predict(host_profile(), LONG, OURS, TILE)
    fast = predict(host_profile(fma_f32_per_s=960e9), LONG, OURS, TILE)
    assert seconds_of(fast, "multiply-adds") == pytest.approx(seconds_of(slow, "multiply-adds") / 2)


def test_multiply_adds_of_our_kernel_are_those_of_the_problem():
    prediction = predict(host_profile(), LONG, OURS, TILE)
    assert seconds_of(prediction, "multiply-adds") == pytest.approx(LONG.flops / 2 / 480e9)


def test_float64_takes_twice_as_long_in_arithmetic():
    wide = AttentionProblem(1, 8, 8, 2048, 2048, 64, dtype="float64")
    narrow, double = (predict(host_profile(), problem, OURS, TILE) for problem in (LONG, wide))
    assert seconds_of(double, "multiply-adds") == pytest.approx(2 * seconds_of(narrow, "multiply-adds"))


def test_an_efficiency_divides_the_prediction():
    plain = predict(host_profile(), LONG, OURS, TILE)
    corrected = predict(host_profile(), LONG, OURS, TILE, Efficiency(0.5, 3))
    assert corrected.seconds == pytest.approx(2 * plain.seconds) and corrected.efficiency.timings == 3
