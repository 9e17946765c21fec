"""A rate of which the kernel's own loop takes more than one issue slot in a hundred is a lower bound."""

import pytest

from microbench.bounds import LOOP_LIMITED, limited_by_its_loop, loop_overhead
from microbench.machine.arch import Machine, by_name
from microbench.point import Point
from microbench.probe import OpCount, Probe, Sample
from microbench.probes import discover
from microbench.run import judge
from microbench.run.plan import Task
from microbench.run.wire import Answer
from microbench.shapes.chain import chain_throughput, loop

H100 = Machine("h", "H", by_name("sm90a"), 132, 1.98e9, 3.35e12, 80 << 30, 50 << 20)
AT = Point((("warps", 16), ("ilp", 4)))


def ffma(per_trip: int) -> Probe:
    return chain_throughput(
        "?", "FFMA", lambda limits: limits.fp32_lanes, "ffma", step=lambda x, a, b: x * a + b, per_trip=per_trip
    )


@pytest.mark.parametrize(("per_trip", "rate", "share"), [(64, 128, 3 / 67), (768, 128, 3 / 771), (64, 16, 0.0)])
def test_the_share_counts_the_branch_and_what_an_operation_occupies(per_trip: int, rate: float, share: float) -> None:
    assert loop_overhead(loop(OpCount("FFMA", per_trip)), rate) == pytest.approx(share)


@pytest.mark.parametrize(("per_trip", "flags"), [(64, (LOOP_LIMITED,)), (768, ())])
def test_the_row_of_a_short_loop_says_so(per_trip: int, flags: tuple[str, ...]) -> None:
    sample = Sample("results_per_clk_sm", 122.3, 122.3, 122.3, 15, 1980.0)
    (row,) = judge.judged("r", Task(0, ffma(per_trip), "nvrtc", AT), H100, Answer((sample,)))
    assert (row.flags, row.status) == (flags, "ok")


def test_no_probe_of_ours_is_limited_by_its_loop() -> None:
    for probe in discover():
        for metric in probe.metrics:
            if probe.runs_on(H100.arch) and metric.bound.documented:
                assert not any(limited_by_its_loop(probe, metric, H100, point) for point in probe.points()), probe.name
