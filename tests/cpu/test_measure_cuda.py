"""`measure` on a GPU of which everything is known: it reports what is true of it, in the unit that it says."""

import math

import pytest

from microbench.errors import MeasureError
from microbench.measure import cuda
from tests.cpu.scripted_device import LAUNCH_NS, ScriptedDevice, ScriptedKernel


@pytest.mark.parametrize("per_operation", [4.0, 23.0, 33.5])
@pytest.mark.parametrize("mhz", [1125.0, 1980.0])
def test_a_latency_is_that_of_one_operation_at_the_clock_it_ran_at(per_operation: float, mhz: float) -> None:
    device = ScriptedDevice(mhz=mhz)
    kernel = ScriptedKernel(device, per_operation, prologue=777)
    found = device.bench().cycles(kernel.launch(1000), kernel.launch(3000), operations=2000)
    assert found.value == pytest.approx(per_operation, rel=1e-3) and found.clock_mhz == pytest.approx(mhz, rel=1e-4)
    cycles, ns = found.latency()
    assert (cycles.metric, ns.metric) == ("latency_cycles", "latency_ns")
    assert ns.value == pytest.approx(per_operation / mhz * 1e3, rel=1e-3)


@pytest.mark.parametrize("threads", [32, 288])
def test_a_block_lasts_until_its_last_warps_end(threads: int) -> None:
    device = ScriptedDevice()
    kernel = ScriptedKernel(device, 10.0, prologue=64)
    found = device.bench().cycles(kernel.launch(100, threads=threads), kernel.launch(400, threads=threads), 300)
    assert found.value == pytest.approx(10.0, rel=1e-3)


def test_warps_that_report_nothing_do_not_count() -> None:
    device = ScriptedDevice()
    kernel = ScriptedKernel(device, 5.0, idle_warps=1)
    assert device.bench().cycles(kernel.launch(500), kernel.launch(1000), 500).value == pytest.approx(5.0, rel=1e-3)


@pytest.mark.parametrize("inner", [1, 5])
def test_seconds_are_those_of_one_launch(inner: int) -> None:
    device = ScriptedDevice()
    kernel = ScriptedKernel(device, warm_ns=20_000, cold_ns=90_000)
    found = device.bench().timed(kernel.launch(0), inner=inner)
    assert found.value == pytest.approx((20_000 + LAUNCH_NS) * 1e-9)
    assert found.clock_mhz == pytest.approx(device.mhz, rel=1e-4)


def test_a_cold_launch_finds_nothing_in_the_l2() -> None:
    device = ScriptedDevice()
    kernel = ScriptedKernel(device, warm_ns=20_000, cold_ns=90_000)
    assert device.bench().timed(kernel.launch(0), cold=True).value == pytest.approx((90_000 + LAUNCH_NS) * 1e-9)


def test_a_launch_stands_behind_what_it_is_to_stand_behind() -> None:
    device = ScriptedDevice()
    kernel = ScriptedKernel(device, warm_ns=20_000, cold_ns=90_000)
    scratch = device.bench().empty(2 * device.l2_bytes)
    found = device.bench().timed(kernel.launch(0), behind=lambda: scratch.fill(1))
    assert found.value == pytest.approx((90_000 + LAUNCH_NS) * 1e-9)


def test_a_rate_is_work_over_time_with_its_ends_exchanged() -> None:
    found = cuda.Measured(2.0, 1.0, 4.0, 15, 1755.0).inverse("flops_per_s", 8.0, "flag")
    assert (found.value, found.low, found.high, found.n, found.flags) == (4.0, 2.0, 8.0, 15, ("flag",))


def test_short_launches_are_repeated_until_the_window_tells_the_clock() -> None:
    device = ScriptedDevice(tick_ns=1000.0)
    kernel = ScriptedKernel(device, warm_ns=1000)
    found = device.bench(quick=True).timed(kernel.launch(0))
    assert found.n * (LAUNCH_NS + 1000) > cuda.WINDOW_TICKS * 1000 * 0.9 and found.n <= cuda.MAX_REPEATS
    assert found.clock_mhz == pytest.approx(device.mhz, rel=1e-3)


def test_a_window_that_stays_too_short_is_refused() -> None:
    device = ScriptedDevice(tick_ns=1e5)
    with pytest.raises(MeasureError, match="too short for a clock reading over 10000 ticks"):
        device.bench().timed(ScriptedKernel(device, warm_ns=1000).launch(0))


def test_without_a_stamp_of_the_same_sm_there_is_no_clock() -> None:
    before = ScriptedDevice().cupy.zeros((8, 2), "int64").get()
    mhz, window_ns = cuda.clock_between(before, before)
    assert math.isnan(mhz) and window_ns == 0


@pytest.mark.parametrize(("smem_bytes", "carveout", "most"), [(0, 0, 0), (1024, 100, 0), (65536, 100, 65536)])
def test_shared_memory_is_asked_for_before_the_first_launch(smem_bytes: int, carveout: int, most: int) -> None:
    device = ScriptedDevice()
    kernel = ScriptedKernel(device, 5.0)
    device.bench().timed(kernel.launch(10, smem_bytes=smem_bytes))
    assert (kernel.preferred_shared_memory_carveout, kernel.max_dynamic_shared_size_bytes) == (carveout, most)
