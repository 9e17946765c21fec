"""Every bound of every probe rejects 1.05 times itself, on a GPU whose limits are known."""

import pytest

from microbench.machine.arch import Machine, by_name
from microbench.point import Point
from microbench.probe import UNKNOWN, Metric, Probe, breaks
from microbench.probes import discover

H100 = Machine(
    gpu="h100-test",
    name="NVIDIA H100",
    arch=by_name("sm90a"),
    sm_count=132,
    clock_hz=1.98e9,
    dram_bytes_per_s=3.352e12,
    dram_bytes=80 << 30,
    l2_bytes=50 << 20,
)
CASES = [
    pytest.param(probe, metric, point, id=f"{probe.name}-{metric.name}-{point}")
    for probe in discover()
    if probe.runs_on(H100.arch)
    for metric in probe.metrics
    for point in probe.points(quick=True)
    if not (probe.skip and probe.skip(H100, point))
]


@pytest.mark.parametrize(("probe", "metric", "point"), CASES)
def test_a_value_1_05_times_past_the_bound_is_rejected(probe: Probe, metric: Metric, point: Point) -> None:
    lower, upper = metric.bound.at(H100, point)
    assert metric.bound == UNKNOWN or lower is not None or upper is not None, "a bound that bounds nothing"
    if lower is not None:
        assert breaks(lower / 1.05, lower, upper) and not breaks(lower, lower, upper)
    if upper is not None:
        assert breaks(upper * 1.05, lower, upper) and not breaks(upper, lower, upper)


def test_every_gpu_probe_has_a_bound_on_every_metric() -> None:
    """A GPU's physics is known where a virtual CPU's is not."""
    unbounded = {case.values[0].name for case in CASES if case.values[1].bound == UNKNOWN}
    assert not unbounded
