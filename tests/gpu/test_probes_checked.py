"""Every probe on this GPU: what its launches leave is what it declares, by NumPy, as on the emulated device."""

from collections.abc import Iterator
from typing import Any

import pytest

from microbench import clocks
from microbench.device import open_device
from microbench.device.cuda import CudaDevice
from microbench.executed import points
from microbench.measure.cuda import CudaBench
from microbench.measure.emulated import MOST_BYTES, MOST_TRIPS
from microbench.measure.launch import Launch, Measured
from microbench.probe import Probe
from microbench.probes import discover

pytestmark = [pytest.mark.gpu, pytest.mark.filterwarnings("default")]

WITHOUT_RESULTS = {"launch_latency"}  # an empty kernel


class CheckedBench(CudaBench):
    """Each launch once more, and its results held against NumPy's before it is timed."""

    checked = 0

    def footprint(self, nbytes: int) -> int:
        return min(nbytes, MOST_BYTES)

    def trips(self, count: int) -> int:
        return min(count, MOST_TRIPS)

    def launch(self, launch: Launch, *more: Any) -> None:
        wanted = [expected.values() for expected in launch.expects]
        self._prepare(launch)
        super().launch(launch, *more)
        for expected, values in zip(launch.expects, wanted, strict=True):
            expected.require(self.host(expected.array), values, self.probe.name)
            self.checked += 1

    def cycles(self, short: Launch, long: Launch, operations: float) -> Measured:
        for launch in (short, long):
            self.launch(launch, self.clocks(launch))
        return super().cycles(short, long, operations)

    def timed(self, launch: Launch, cold: bool = False, inner: int = 1, spaced_s: float = 0.0) -> Measured:
        self.launch(launch)
        return super().timed(launch, cold, inner, spaced_s)


@pytest.fixture(scope="module")
def device(gpu: clocks.Gpu) -> Iterator[CudaDevice]:
    opened = open_device("cuda:0")
    assert isinstance(opened, CudaDevice)
    yield opened
    opened.close()


@pytest.mark.parametrize("probe", [probe for probe in discover() if probe.archs != ("host",)], ids=lambda p: p.name)
def test_what_a_probe_times_computes_what_it_declares(device: CudaDevice, probe: Probe) -> None:
    if not probe.runs_on(device.machine.arch):
        pytest.skip(f"{device.machine.arch.name} has no {probe.name}")
    checked = 0
    for point in points(probe, quick=True):
        bench = CheckedBench(device, probe, "nvrtc", quick=True)
        probe.run(bench, point)
        checked += bench.checked
    assert checked or probe.name in WITHOUT_RESULTS
