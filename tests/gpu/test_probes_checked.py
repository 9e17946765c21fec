"""Every probe on this GPU: what its launches leave is what it declares, by NumPy, as on the emulated device."""

import pytest

from microbench.device.cuda import CudaDevice
from microbench.probe import Probe
from microbench.probes import discover
from microbench.verify.executed import points
from microbench.verify.probed import examined

pytestmark = [pytest.mark.gpu, pytest.mark.filterwarnings("default")]

WITHOUT_RESULTS = {"launch_latency"}  # an empty kernel


@pytest.mark.parametrize("probe", [probe for probe in discover() if probe.archs != ("host",)], ids=lambda p: p.name)
def test_what_a_probe_times_computes_what_it_declares(device: CudaDevice, probe: Probe) -> None:
    if not probe.runs_on(device.machine.arch):
        pytest.skip(f"{device.machine.arch.name} has no {probe.name}")
    found = [examined(device, probe, point) for point in points(probe, quick=True)]
    assert not [each.wrong for each in found if each.wrong]
    assert sum(each.arrays for each in found) or probe.name in WITHOUT_RESULTS
