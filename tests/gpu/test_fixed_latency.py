"""A cubin whose stall counts were lowered runs as it says: right as ptxas wrote it, wrong with no wait at all."""

import numpy as np
import pytest

from microbench.device.cuda import CudaDevice
from microbench.measure import open_bench
from microbench.point import Point
from microbench.probes import named
from microbench.probes.issue import fixed_latency

pytestmark = pytest.mark.gpu


@pytest.mark.parametrize("operation", fixed_latency.OPERATIONS)
def test_a_chain_without_stalls_reads_stale_operands(device: CudaDevice, operation: str) -> None:
    probe, point = named("fixed_latency"), Point((("operation", operation),))
    bench = open_bench(device, probe, "nvrtc", quick=True)
    (kernel,), (build,) = bench.kernels(point), fixed_latency.builds(point)
    places = bench.stalls(kernel, build.contract)
    inputs = bench.array(fixed_latency.operands(operation))

    def result(stall: int) -> np.ndarray:
        tested = bench.patched(kernel, [(index, stall) for index, _ in places])
        out, read = device.cupy.zeros(32, np.uint32), device.cupy.zeros((1, 2), np.int64)
        tested.function((1,), (32,), (inputs, out, read))
        return out.get()

    scheduled = min(stall for _, stall in places)
    assert (result(scheduled) == result(2 * scheduled)).all()
    assert (result(1) != result(scheduled)).any()
    (sample,) = probe.run(bench, point)
    assert 1 <= sample.value <= scheduled
