"""The figures of one machine come from its profile and the rows that it stands on."""

import pandas as pd
import pytest

from microbench.report import figures, figures_machine
from microbench.results import frame
from microbench.results.profile import Profile
from tests.data.profiles import shipped


def framed(gpu: str) -> tuple[Profile, pd.DataFrame]:
    found, run = shipped(gpu)
    return found, frame.frame([run])


@pytest.mark.parametrize(
    ("gpu", "curves", "levels", "count"),
    [
        ("h100-sxm-80gb", 2, ["L1: 16.2 ns", "L2: 141 ns", "DRAM: 347 ns"], 3),
        ("host-amd-epyc-f26m2-2c", 1, ["L1: 0.927 ns", "L2: 3.25 ns", "L3: 12.0 ns", "DRAM: 148 ns"], 3),
    ],
)
def test_a_machine_has_its_own_ladder_with_its_own_levels(gpu: str, curves: int, levels: list[str], count: int) -> None:
    profile, runs = framed(gpu)
    (axes,) = figures_machine.ladder(profile, runs).axes
    assert len(axes.get_legend().get_texts()) == curves and [text.get_text() for text in axes.texts] == levels
    pictures = figures_machine.pictures(profile, runs)
    assert len(pictures) == count and all(picture.svg.startswith(b"<?xml") for picture in pictures)


def test_without_runs_there_are_shares_alone() -> None:
    profile, runs = framed("h100-sxm-80gb")
    (picture,) = figures_machine.pictures(profile, runs[:0])
    assert "shares" in picture.shows


def test_no_power_and_no_latency_is_a_share_of_its_bound() -> None:
    profile = Profile.load("h200-sxm-141gb")
    bounded = {each.unit for each in profile.constants if each.bound_upper}
    drawn = {each.unit for each in figures.rates_with_a_bound(profile)}
    assert bounded - drawn == {"W", "cycles"} and "B/s" in drawn


def test_disturbed_rows_are_not_drawn_where_every_point_has_others() -> None:
    profile, runs = framed("host-amd-epyc-f26m2-2c")
    rows = figures_machine.behind(profile, runs, "host_matmul")
    assert len(rows) == 15 and not any("busy" in flags for flags in rows["flags"])
    assert len(figures_machine.behind(profile, runs[runs["campaign"] == 1], "host_matmul")) == 3
