"""microbench.probe: points, bounds and metrics of a probe."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from microbench.errors import UnknownArch
from microbench.machine.arch import ARCHS, Machine, by_compute_capability, by_name, with_feature
from microbench.point import Point
from microbench.probe import Axis, Bound, Metric, Probe, breaks

MACHINE = Machine("test", "Test", by_name("sm90a"), 132, 1.98e9, 3.35e12, 1 << 36, 50 << 20)
positive = st.floats(min_value=1e-6, max_value=1e18)


@given(bound=positive)
def test_a_value_1_05_times_past_its_bound_is_rejected(bound: float) -> None:
    assert breaks(bound * 1.05, None, bound) and breaks(bound / 1.05, bound, None)


@given(bound=positive)
def test_a_value_at_its_bound_passes(bound: float) -> None:
    assert not breaks(bound, bound, bound)


def test_nothing_breaks_an_unknown_bound() -> None:
    assert not breaks(1e30, None, None)


def test_a_bound_may_depend_on_machine_and_point() -> None:
    bound = Bound("the pipe", lower=lambda _, point: float(point["ways"]), upper=lambda m, _: m.dram_bytes_per_s)
    assert bound.at(MACHINE, Point((("ways", 8),))) == (8.0, 3.35e12)


def test_points_are_the_product_of_the_axes_and_quick_keeps_a_subset() -> None:
    probe = Probe("?", ("host",), (Metric("m", "u"),), lambda *_: [], (Axis("a", (1, 2), (1,)), Axis("b", ("x", "y"))))
    assert [str(point) for point in probe.points()] == ["a=1 b=x", "a=1 b=y", "a=2 b=x", "a=2 b=y"]
    assert [str(point) for point in probe.points(quick=True)] == ["a=1 b=x", "a=1 b=y"]


def test_a_probe_without_axes_has_one_point() -> None:
    probe = Probe("?", ("host",), (Metric("m", "u"),), lambda *_: [])
    assert [str(point) for point in probe.points()] == ["-"]
    with pytest.raises(KeyError, match="declares no metric 'other'"):
        probe.metric("other")


def test_architectures_are_found_by_name_capability_and_feature() -> None:
    assert by_compute_capability(9, 0).name == "sm90a"
    assert by_name("sm90a").nvrtc == "sm_90a"
    assert with_feature("wgmma") == ("sm90a",)
    assert len({arch.name for arch in ARCHS}) == len(ARCHS)
    with pytest.raises(UnknownArch, match=r"'sm42'.*sm90a"):
        by_name("sm42")
    with pytest.raises(UnknownArch, match=r"4\.2"):
        by_compute_capability(4, 2)
