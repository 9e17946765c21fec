"""Every probe on this GPU: what its launches leave is what it declares, by NumPy, as on the emulated device."""

from functools import partial
from typing import Any

import pytest

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
        self._prepare(launch)
        self.checked += launch.held(partial(super().launch, launch, *more), self, self.probe.name)

    def cycles(self, short: Launch, long: Launch, operations: float) -> Measured:
        for launch in (short, long):
            self.launch(launch, self.clocks(launch))
        return super().cycles(short, long, operations)

    def timed(self, launch: Launch, cold: bool = False, inner: int = 1, spaced_s: float = 0.0) -> Measured:
        self.launch(launch)
        return super().timed(launch, cold, inner, spaced_s)


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
