"""The arithmetic of the tensor-core probes: operands, FLOP and bounds, on a bench that runs at the hardware's limit."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from microbench.machine.arch import Machine, by_name
from microbench.measure.launch import Launch, Measured
from microbench.point import Point
from microbench.probe import Probe, breaks
from microbench.probes import named
from microbench.shapes.matrix import bits16, mma_operands, wgmma_operands

CLOCK_HZ = 1.98e9
H100 = Machine("h100", "H100", by_name("sm90a"), 132, CLOCK_HZ, 3.35e12, 80 << 30, 50 << 20)


class PeakBench:
    """Every kernel takes exactly the cycles that the probe's own bound allows."""

    machine = H100

    def __init__(self, probe: Probe, point: Point) -> None:
        self.probe, self.point = probe, point
        self.launches: list[Launch] = []

    def kernels(self, point: Point) -> tuple[Any, ...]:
        assert self.probe.builds is not None
        return tuple(SimpleNamespace(build=build) for build in self.probe.builds(point))

    def array(self, values: NDArray[Any]) -> NDArray[Any]:
        return values

    def empty(self, nbytes: int) -> int:
        return nbytes

    def trips(self, count: int) -> int:
        return count

    def clocks(self, launch: Launch) -> int:
        return launch.warps

    def cycles(self, short: Launch, long: Launch, operations: float) -> Measured:
        self.launches += [short, long]
        return self.measured(self.cycles_of(long) - self.cycles_of(short), operations)

    def timed(self, launch: Launch, inner: int) -> Measured:
        self.launches.append(launch)
        return self.measured(self.cycles_of(launch), CLOCK_HZ)

    def measured(self, value: float, unit: float) -> Measured:
        return Measured(value / unit, value / unit, value / unit, 15, CLOCK_HZ / 1e6)

    def cycles_of(self, launch: Launch) -> float:
        """What one block takes, from the trips it was given and the FLOP of eight instructions a warp or warpgroup."""
        trips = next(int(argument) for argument in launch.args if isinstance(argument, np.int32))
        wgmma = "n" in dict(self.point.values)
        flops = 2 * 64 * self.point["n"] * 16 if wgmma else 2 * 16 * 8 * 16
        issuers = launch.block // (128 if wgmma else 32)
        one_of = 4 if self.probe.name == "mma_sync_latency" else 1  # a lone warp has a quarter of the SM
        return trips * 8 * issuers * one_of * flops / 4096


PROBES = tuple(map(named, ("mma_sync_latency", "mma_sync_throughput", "wgmma_latency", "wgmma_throughput")))
# Below N = 64 shared memory, not the tensor core, is the limit.
POINTS = [(probe, point) for probe in PROBES for point in probe.points() if dict(point.values).get("n", 256) >= 64]


@pytest.mark.parametrize(("probe", "point"), POINTS, ids=lambda value: str(getattr(value, "name", value)))
def test_a_chip_at_its_limit_reports_its_bound(probe: Probe, point: Point) -> None:
    samples = probe.run(PeakBench(probe, point), point)
    assert {sample.metric for sample in samples} == {metric.name for metric in probe.metrics_at(point)}
    for sample in samples:
        lower, upper = probe.metric(sample.metric).bound.at(H100, point)
        limit = lower if upper is None else upper
        assert limit is not None and sample.value == pytest.approx(limit, rel=1e-9)
        beyond = limit / 1.05 if upper is None else limit * 1.05
        assert breaks(beyond, lower, upper)


@pytest.mark.parametrize(("probe", "point"), POINTS, ids=lambda value: str(getattr(value, "name", value)))
def test_launches_fill_the_chip_and_fit_the_sm(probe: Probe, point: Point) -> None:
    bench = PeakBench(probe, point)
    probe.run(bench, point)
    limits = H100.arch.limits
    for launch in bench.launches:
        assert launch.grid == H100.sm_count and launch.block % 32 == 0
        assert launch.smem_bytes <= limits.smem_bytes_per_block and launch.args[2 if "wgmma" in probe.name else 1] > 0


@pytest.mark.parametrize("n", [8, 16, 32])
@pytest.mark.parametrize(("operands", "rows"), [("ss", 64), ("rs", 0)])
def test_a_narrow_wgmma_is_bound_by_shared_memory(n: int, operands: str, rows: int) -> None:
    point = Point((("n", n), ("operands", operands)))
    lower, _ = named("wgmma_latency").metric("interval_cycles").bound.at(H100, point)
    assert lower == max(n / 2, (rows + n) * 32 / 128)


@given(st.lists(st.floats(width=32, allow_nan=False, allow_infinity=False), min_size=1))
def test_bits16_rounds_to_bfloat16_as_torch_does(values: list[float]) -> None:
    array = np.array(values, np.float32)
    expected = torch.from_numpy(array.copy()).to(torch.bfloat16).view(torch.int16).numpy().view(np.uint16)
    np.testing.assert_array_equal(bits16(array, "bf16"), expected)


def test_operands_cancel_and_zeros_are_all_bits_zero() -> None:
    rows = mma_operands("bf16", "normal", threads=64, chains=4)
    assert rows.shape == (16, 64)
    np.testing.assert_array_equal(rows[:4] ^ 0x80008000, rows[4:8])
    a, b = wgmma_operands("normal", warpgroups=2, n=96)
    assert (a.shape, b.shape, a.dtype) == ((128, 64), (96, 64), np.uint16)
    np.testing.assert_array_equal(a[:, :32] ^ 0x8000, a[:, 32:])
    assert not any(array.any() for array in wgmma_operands("zeros", warpgroups=1, n=8))
    assert not mma_operands("f16", "zeros", threads=32, chains=1).any()
