"""microbench.results.curves: what a sweep says, and when it says nothing."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from microbench.point import Curves, NoValue, Point
from microbench.results.curves import (
    NO_PLATEAU,
    _pieces,
    at,
    first,
    interval,
    knee,
    level,
    median_curve,
    over,
    peak,
    plateaus,
    slope,
)

finite = st.floats(min_value=-1e12, max_value=1e12)


def curves(x: list[float], *campaigns: list[float], axis: str = "x") -> Curves:
    return Curves(tuple(Point(((axis, value),)) for value in x), np.array(campaigns, dtype=float))


@given(arrays(np.float64, st.integers(1, 12), elements=finite))
def test_campaigns_span_from_least_to_most(values: np.ndarray) -> None:
    assert interval(values) == (np.median(values), values.min(), values.max())


def test_equal_campaigns_give_a_zero_width_and_no_nan() -> None:
    assert interval(np.full(9, 32.0)) == (32.0, 32.0, 32.0)


def test_a_failed_campaign_does_not_count() -> None:
    assert interval(np.array([np.nan, 2.0, 4.0])) == (3.0, 2.0, 4.0)
    with pytest.raises(NoValue, match="no campaign"):
        interval(np.array([np.nan]))


@given(arrays(np.float64, st.tuples(st.integers(1, 7), st.integers(0, 6)), elements=finite | st.just(np.nan)))
def test_a_median_curve_is_over_the_campaigns_that_measured_each_point(values: np.ndarray) -> None:
    measured = [column[np.isfinite(column)] for column in values.T]
    found = median_curve(Curves((Point(),) * values.shape[1], values))
    np.testing.assert_array_equal(found, [np.median(each) if len(each) else np.nan for each in measured])


def test_at_takes_the_one_point_that_matches() -> None:
    reduced = at(x=2)(curves([1, 2], [10.0, 20.0], [11.0, 21.0]))
    assert list(reduced.per_campaign) == [20.0, 21.0] and reduced.points == (Point((("x", 2),)),)
    with pytest.raises(NoValue, match="0 points match"):
        at(x=3)(curves([1, 2], [1.0, 2.0]))


def test_over_is_the_median_of_a_range() -> None:
    assert list(over("x", 2, 4)(curves([1, 2, 3, 4], [9.0, 1.0, 2.0, 3.0])).per_campaign) == [2.0]
    with pytest.raises(NoValue, match="no point has x"):
        over("x", 8, 9)(curves([1], [1.0]))


@pytest.mark.parametrize(
    ("values", "label"),
    [
        ([1.0, 5.0, 9.95, 10.0, 10.0], "measured"),
        ([1.0, 2.0, 4.0, 8.0, 16.0], "lower bound"),
        ([1.0, 10.0, 9.9, 8.0], "measured"),
        ([1.0, 10.0, 9.0, 8.0], "lower bound"),
        ([1.0, 9.9, 10.0, 10.2], "lower bound"),
        ([1.0, 2.0], "lower bound"),
    ],
)
def test_a_peak_that_still_rises_is_only_a_lower_bound(values: list[float], label: str) -> None:
    assert peak("x")(curves(list(range(len(values))), values)).label == label


def test_a_peak_is_the_level_of_the_highest_plateau_and_no_hump() -> None:
    """The L2 of an H100 by bytes in flight: the argmax was one point, of which two runs disagreed by 3 %. The median
    of the points that are one plateau is none that stands out."""
    found = peak("x")(curves([4, 8, 16, 32, 64, 128], [11.4, 21.5, 28.7, 31.1, 29.97, 30.3]))
    assert list(found.per_campaign) == [pytest.approx(30.3)] and [point["x"] for point in found.points] == [32, 64, 128]


def test_where_no_two_points_agree_the_highest_counts_and_says_so() -> None:
    found = peak("x")(curves([1, 2, 4], [41.5, 59.4, 52.8]))
    assert list(found.per_campaign) == [59.4] and found.flags == (NO_PLATEAU,)


def test_a_slope_is_the_cost_of_one_more() -> None:
    assert slope("x")(curves([1, 2, 4], [7.0, 9.0, 13.0])).per_campaign == pytest.approx([2.0])
    with pytest.raises(NoValue, match="three points"):
        slope("x")(curves([1, 2], [1.0, 2.0]))


def ways(count: int) -> list[list[tuple[int, int]]]:
    """Every way to cut so many points into pieces of two or more."""
    if count == 0:
        return [[]]
    return [[*before, (begin, count)] for begin in (0, *range(2, count - 1)) for before in ways(begin)]


@settings(max_examples=40, deadline=None)
@given(arrays(np.float64, st.integers(4, 9), elements=st.floats(0, 1)), st.floats(0.001, 0.5))
def test_a_curve_is_cut_where_no_other_cut_is_cheaper(values: np.ndarray, penalty: float) -> None:
    def cost(pieces: list[tuple[int, int]]) -> float:
        return sum(np.var(values[begin:stop]) * (stop - begin) + penalty for begin, stop in pieces)

    assert cost(_pieces(values, penalty)) == pytest.approx(min(map(cost, ways(len(values)))))


STEPS = ((32.0, 8), (270.0, 8), (650.0, 8))


def ladder(noise: float, seed: int) -> tuple[list[float], list[float]]:
    """Three levels of eight points with a mixed point between each two, and relative noise."""
    values: list[float] = []
    for number, (value, count) in enumerate(STEPS):
        values += [(STEPS[number - 1][0] + value) / 2] if number else []
        values += [value] * count
    jitter = np.random.default_rng(seed).uniform(1 - noise, 1 + noise, len(values))
    return [float(2**i) for i in range(len(values))], list(np.array(values) * jitter)


@settings(max_examples=25, deadline=None)
@given(noise=st.floats(0, 0.01), seed=st.integers(0, 1000))
def test_the_levels_and_ends_of_a_ladder_are_found_through_noise(noise: float, seed: int) -> None:
    x, values = ladder(noise, seed)
    sweep = curves(x, values, values)
    assert len(plateaus(values)) == len(STEPS)
    for number, (value, _) in enumerate(STEPS):
        assert level(number, "x")(sweep).per_campaign == pytest.approx([value, value], rel=0.02)
    assert list(knee(0, "x")(sweep).per_campaign) == [x[7], x[7]]
    assert list(knee(1, "x")(sweep).per_campaign) == [x[16], x[16]]


def test_points_may_come_in_any_order() -> None:
    x, values = ladder(0.0, 0)
    order = np.random.default_rng(1).permutation(len(x))
    mixed = curves([x[i] for i in order], [values[i] for i in order])
    assert list(level(1, "x")(mixed).per_campaign) == [270.0] and list(knee(0, "x")(mixed).per_campaign) == [x[7]]


def test_a_plateau_that_is_not_there_is_no_value() -> None:
    x, values = ladder(0.0, 0)
    with pytest.raises(NoValue, match="has 3 plateaus, number 3"):
        level(3, "x")(curves(x, values))
    with pytest.raises(NoValue, match="four finite points"):
        plateaus([1.0, 2.0, 3.0])


def test_a_rise_measured_finely_is_no_plateau() -> None:
    """Two points of it within 6 % of each other lie a 24th of an octave apart."""
    x = [float(2 ** (i / 24)) for i in range(68)]
    rise = [300.0, 330.0, 372.0, 376.0, 420.0, 460.0, 480.0, 497.0]
    values = [280.0] * 30 + rise + [512.0] * 15 + [560.0, 610.0, 640.0] + [656.0] * 12
    assert len(plateaus(values)) == 4 and len(plateaus(values, x)) == 3
    assert list(knee(1, "x")(curves(x, values)).per_campaign) == [x[52]]


def test_the_first_that_finds_a_value_gives_it_and_else_the_first_says_why_not() -> None:
    two = curves([1.0, 2.0], [10.0, 20.0])
    assert first(at(x=2.0), at(x=1.0))(two).per_campaign.tolist() == [20.0]
    assert first(at(x=8.0), at(x=1.0))(two).per_campaign.tolist() == [10.0]
    with pytest.raises(NoValue, match="'x': 8"):
        first(at(x=8.0), at(x=4.0))(two)
