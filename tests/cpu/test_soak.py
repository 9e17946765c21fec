"""A soak: seconds of one launch, each with its time, its clock, its watts; one campaign of a run has it."""

import math
from types import SimpleNamespace

import pytest

from microbench.machine import nvml
from microbench.machine.arch import Machine, by_name
from microbench.measure.soak import Second, samples
from microbench.probes import discover
from microbench.results import derive
from microbench.results.record import Record
from microbench.run.plan import Plan
from tests.cpu.scripted_device import ScriptedDevice, ScriptedKernel
from tests.cpu.test_clocks import on_gpu
from tests.cpu.test_record import row

H100 = Machine("h", "H", by_name("sm90a"), 132, 1.98e9, 3.35e12, 80 << 30, 50 << 20)
SOAKS = {probe.name: probe for probe in discover() if probe.campaigns == 1}
WATTS = 700.0


def test_each_second_has_its_time_its_clock_and_its_watts(monkeypatch: pytest.MonkeyPatch) -> None:
    device = ScriptedDevice(mhz=1600.0)
    kernel = ScriptedKernel(device, per_operation=4000.0)
    monkeypatch.setattr(nvml, "energy_joules", lambda _: device.now_ns * 1e-9 * WATTS)
    monkeypatch.setattr(nvml, "temperature_c", lambda _: 61.0)
    clock = SimpleNamespace(perf_counter=lambda: device.now_ns * 1e-9)
    monkeypatch.setattr("microbench.measure.soak.time", clock)
    launch = kernel.launch(1000)
    found = device.bench().soak(launch, 3)
    assert len(found) == 3 and {second.celsius for second in found} == {61.0}
    for second in found:
        assert second.seconds_a_launch == pytest.approx(2.5e-3, rel=0.01)
        assert second.clock_mhz == pytest.approx(1600.0, rel=1e-3)
        assert second.watts == pytest.approx(WATTS, rel=0.01)


def test_what_a_second_gives_is_a_map_and_a_board_that_counts_no_energy_gives_no_power() -> None:
    found = (Second(2.0, 1600.0, None, 60.0), Second(4.0, 1610.0, None, 64.0), Second(4.0, 1620.0, None, 62.0))
    rate, heat = samples(found, work=8.0)
    assert (rate.metric, rate.value, rate.low, rate.high, rate.n) == ("sustained_flops_per_s", 2.0, 2.0, 4.0, 3)
    assert rate.values == (4.0, 2.0, 2.0) and rate.clock_mhz == 1610.0
    assert (heat.metric, heat.value, heat.values) == ("temperature_c", 62.0, (60.0, 64.0, 62.0))


def test_the_watts_of_a_soak_are_what_was_counted_over_all_its_seconds() -> None:
    """A counter that moves ten times a second gives one second too much and another one too little."""
    counted = (316.3, 269.2, 302.1, 274.8, 305.5)
    _, power, _ = samples(tuple(Second(2.0, 1790.0, watts, 47.0) for watts in counted), work=8.0)
    assert power.value == pytest.approx(sum(counted) / 5) and power.values == counted


@pytest.mark.parametrize("name", ["mma_sync_soak", "wgmma_soak"])
def test_a_soak_is_in_the_first_campaign_of_a_full_run_alone(name: str) -> None:
    full, quick = (Plan("r", (SOAKS[name],), H100, 6, quick) for quick in (False, True))
    assert [len(full.tasks(campaign)) for campaign in range(6)] == [2, 0, 0, 0, 0, 0]
    assert not quick.tasks(0)


def test_its_constants_are_over_seconds_and_few_campaigns_are_no_flaw() -> None:
    def told(metric: str, unit: str, value: float) -> Record:
        fields = {
            "probe": "wgmma_soak",
            "metric": metric,
            "unit": unit,
            "method": "nvrtc",
            "point": {"inputs": "normal"},
        }
        return row(value, low=0.9 * value, high=1.1 * value, n=5, clock_mhz=1400.0, **fields)

    run = on_gpu(told("sustained_flops_per_s", "FLOP/s", 8e14), told("power_w", "W", 700.0))
    profile = derive.reduce_runs([run], [SOAKS["wgmma_soak"]]).profile
    rate = profile["wgmma_bf16_sustained_flops_per_s"]
    assert (rate.value, rate.low, rate.high, rate.n) == (8e14, 0.9 * 8e14, 1.1 * 8e14, 5)
    assert rate.flags == ("off-clock",) and rate.governed_by == "power" and rate.clocks_mhz == (1400.0, 1400.0)
    assert profile.value("wgmma_bf16_sustained_power_w") == 700.0 and not math.isnan(rate.value)
