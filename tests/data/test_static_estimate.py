"""The static estimate on file: as far off as its goal allows, and held against the timings that are on file too."""

import statistics

import numpy as np
import pytest
from scipy.stats import spearmanr

from attention.estimate import held
from attention.estimate.predicted import Estimate
from attention.variant import Config

ROWS = held.read()
GOAL, LEAST_CASES, LEAST_RANK = 0.15, 20, 0.8


def test_enough_cases_are_held_each_by_itself() -> None:
    assert len(ROWS) >= LEAST_CASES
    assert len({(row.shape, row.dtype, row.causal, str(row.config)) for row in ROWS}) == len(ROWS)


def test_every_estimate_is_within_the_goal() -> None:
    worst = max(ROWS, key=lambda row: abs(row.error))
    assert abs(worst.error) <= GOAL, worst


def test_estimates_rank_as_measurements_do() -> None:
    seconds = spearmanr([row.measured_seconds for row in ROWS], [row.estimated_seconds for row in ROWS]).statistic
    assert seconds >= LEAST_RANK
    # Long problems take long, and nobody would miss that: speeds by the clock must rank as well.
    assert spearmanr([row.speed for row in ROWS], [row.estimated_speed for row in ROWS]).statistic >= LEAST_RANK


def test_the_file_holds_every_timing_that_counts() -> None:
    cases = tuple(held.cases())
    assert [(case[0].shape, case[0].config, case[0].causal, len(case)) for case in cases] == [
        (row.shape, row.config, row.causal, row.timings) for row in ROWS
    ]
    for case, row in zip(cases, ROWS, strict=True):
        clocks = [timing.clock_mhz for timing in case if timing.clock_mhz]
        cycles = statistics.median(timing.seconds * clock for timing, clock in zip(case, clocks, strict=True))
        assert row.measured_seconds * row.clock_mhz == pytest.approx(cycles, rel=1e-5)


def test_the_interval_reaches_as_far_as_the_widest_misses() -> None:
    of = Estimate("sm70/forward/quad_pair", Config(), "v100-pcie", 1.0, 1e12, 1.0, 1, (), 0, (), "")
    found, errors = held.interval(of), np.array([row.error for row in ROWS])
    assert found.low_seconds == pytest.approx(1 / (1 + errors.max())) and found.low_seconds < 1 < found.high_seconds
    assert found.high_seconds == pytest.approx(1 / (1 + errors.min())) and found.held == len(ROWS)
    assert found.low_flops_per_s == pytest.approx(1e12 / found.high_seconds)
