"""What NVML says of a disturbed measurement becomes a flag, each reason its own."""

import sys
from types import SimpleNamespace

import pytest

from microbench.machine import nvml as clocks

OWN = 4711
# nvml.h: nvmlClocksEventReason*. Three slow nothing down: idle, and settings of application and display clocks.
REASONS = {0x04: "power-cap", 0x08: "hw-slowdown", 0x20: "sw-thermal", 0x40: "hw-thermal", 0x80: "hw-power-brake"}
HARMLESS = (0x01, 0x02, 0x100)
GPU = clocks.Gpu(0, "Scripted GPU", 1 << 34, (9, 0), False)


@pytest.fixture
def nvml(monkeypatch):
    """A driver that says what the test tells it."""
    told = SimpleNamespace(reasons=0, pids=[OWN])
    driver = SimpleNamespace(
        nvmlInit=lambda: None,
        nvmlShutdown=lambda: None,
        nvmlDeviceGetHandleByIndex=lambda index: index,
        nvmlDeviceGetCurrentClocksEventReasons=lambda _: told.reasons,
        nvmlDeviceGetComputeRunningProcesses=lambda _: [SimpleNamespace(pid=pid) for pid in told.pids],
    )
    monkeypatch.setitem(sys.modules, "pynvml", driver)
    return told


@pytest.mark.parametrize(("bit", "name"), REASONS.items())
def test_each_reason_that_slows_the_clock_is_named(nvml, bit, name):
    nvml.reasons = bit | sum(HARMLESS)
    assert clocks.trouble(GPU, OWN) == (f"throttled:{name}",)


def test_what_slows_nothing_is_no_trouble(nvml):
    nvml.reasons = sum(HARMLESS)
    assert clocks.trouble(GPU, OWN) == ()


@pytest.mark.parametrize(
    ("pids", "busy"), [([], False), ([OWN], False), ([OWN, 1], True), ([77], False), ([77, 78], True)]
)
def test_another_process_makes_it_busy(nvml, pids, busy):
    """In a container one's own process has a number that is not ours: one stranger may be that."""
    nvml.pids = pids
    assert clocks.trouble(GPU, OWN) == (("busy",) if busy else ())
