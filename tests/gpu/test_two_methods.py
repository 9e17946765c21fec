"""Two methods, one GPU: CUDA C++ by NVRTC and Python by Numba measure the same at the quick points, within 3 %.

Both run at a point one after the other, so that they meet the same memory and the same clock. A disagreement is
measured twice more, and judged by the medians.
"""

from collections.abc import Iterator, Mapping
from statistics import median

import numpy as np
import pytest

from microbench.cli.check import AGREEMENT
from microbench.device.cuda import CudaDevice
from microbench.measure import open_bench
from microbench.point import Curves, NoValue, Point, Value
from microbench.probe import Constant, Metric, Probe
from microbench.probes import discover
from microbench.results.curves import plateaus
from microbench.results.record import Record
from microbench.run import judge
from microbench.run.plan import Task
from microbench.run.wire import Answer

# Warnings of CuPy itself are CuPy's affair.
pytestmark = [pytest.mark.gpu, pytest.mark.filterwarnings("default")]

TWINS = [probe for probe in discover() if probe.twin is not None]
METHODS = ("nvrtc", "numba")
ROUNDS = 3
SATURATED = 0.85
FOOTPRINT = "footprint_bytes"

# values[metric][point] = what (nvrtc, numba) gave
Values = dict[str, dict[Point, tuple[float, float]]]


def records(device: CudaDevice, probe: Probe, method: str, point: Point) -> list[Record]:
    """What a run would write of this point, judged by the metrics' bounds."""
    bench = open_bench(device, probe, method, quick=True)
    answer = Answer(tuple(probe.run(bench, point)))
    return judge.judged("test", Task(0, probe, method, point), device.machine, answer)


def measure(device: CudaDevice, probe: Probe) -> Values:
    """One round over the quick points; fails where a value is missing, not finite or not possible."""
    values: Values = {metric.name: {} for metric in probe.metrics}
    for point in probe.points(quick=True):
        if probe.skip and probe.skip(device.machine, point):
            continue
        first, second = (records(device, probe, method, point) for method in METHODS)
        for one, other in zip(first, second, strict=True):
            assert (one.status, other.status) == ("ok", "ok"), f"{point}: {one.reason or other.reason}"
            assert one.value is not None
            assert other.value is not None
            values[one.metric][point] = (one.value, other.value)
    return values


def middle(rounds: list[Values]) -> Values:
    """The median of the rounds, method by method."""
    newest = rounds[-1]
    return {
        metric: {
            point: (
                median(values[metric][point][0] for values in rounds),
                median(values[metric][point][1] for values in rounds),
            )
            for point in points
        }
        for metric, points in newest.items()
    }


def deviation(pair: tuple[float, float]) -> float:
    first, second = pair
    return second / first - 1


def settled(metric: Metric, sweep: Mapping[Point, tuple[float, float]]) -> Iterator[Point]:
    """The points of one sweep that show the hardware alone.

    A rate below saturation times the loop's own latency too, and two compilers write the address arithmetic of a loop
    differently (an H100's L1 with 4 KiB in flight: 57 and 62 B/clk/SM, two register moves against one). A latency
    between two levels of memory is a mixture, by the luck of a random ring: the knee is compared in its place.
    """
    points, first = list(sweep), [pair[0] for pair in sweep.values()]
    if metric.unit.startswith("B/"):
        yield from (point for point, value in zip(points, first, strict=True) if value >= SATURATED * max(first))
    elif points[0].values[-1][0] == FOOTPRINT:
        for flat in plateaus(first):
            yield from points[flat.first : flat.last + 1]
    else:
        yield from points


def sweeps(points: Mapping[Point, tuple[float, float]]) -> list[dict[Point, tuple[float, float]]]:
    """The points grouped by every axis but the last, along which they are ordered."""
    groups: dict[tuple[tuple[str, Value], ...], dict[Point, tuple[float, float]]] = {}
    for point, pair in points.items():
        groups.setdefault(point.values[:-1], {})[point] = pair
    return list(groups.values())


def constant_of(constant: Constant, points: Mapping[Point, tuple[float, float]], method: int) -> float | None:
    """The constant as a profile would hold it; None where the quick points are too few for it."""
    row = np.array([[pair[method] for pair in points.values()]])
    try:
        return float(np.median(constant.reduce(Curves(tuple(points), row)).per_campaign))
    except NoValue:
        return None


def disagreements(probe: Probe, values: Values) -> Iterator[str]:
    """One line for each settled point and each constant whose two values lie further apart than AGREEMENT."""
    for metric in probe.metrics:
        if metric.unit == "ns":
            continue  # the cycles beside it, over the clock of the moment
        for sweep in sweeps(values[metric.name]):
            for point in settled(metric, sweep):
                if not abs(deviation(sweep[point])) <= AGREEMENT:
                    yield f"{metric.name} at {point}: {sweep[point]}, {deviation(sweep[point]):+.2%}"
    for constant in probe.constants:
        pair = [constant_of(constant, values[constant.metric], method) for method in range(len(METHODS))]
        first, second = pair
        if first is None or second is None:
            if first is not second:
                yield f"{constant.name}: {pair}, only one method has it"
        elif not abs(deviation((first, second))) <= AGREEMENT:
            yield f"{constant.name}: {pair}, {deviation((first, second)):+.2%}"


def test_every_memory_and_shared_memory_probe_on_raw_addresses_has_a_second_method() -> None:
    families = {probe.family for probe in TWINS}
    assert families == {"memory", "shared_memory"}
    without = {probe.name for probe in discover() if probe.family in families and probe.twin is None}
    assert without == {"l1_index_latency"}  # an index chase is a quantity of its own


@pytest.mark.parametrize("probe", TWINS, ids=lambda probe: probe.name)
def test_both_methods_give_possible_values_that_agree(device: CudaDevice, probe: Probe) -> None:
    rounds: list[Values] = []
    wrong: list[str] = []
    for _ in range(ROUNDS):
        rounds.append(measure(device, probe))
        values = middle(rounds)
        wrong = list(disagreements(probe, values))
        if not wrong:
            break
    assert all(values.values()), f"{probe.name} has no quick point on {device.machine.name}"
    assert any(constant_of(constant, values[constant.metric], 0) is not None for constant in probe.constants)
    assert not wrong, f"after {len(rounds)} rounds:\n" + "\n".join(wrong)
