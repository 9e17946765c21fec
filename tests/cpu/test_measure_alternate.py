"""Whole calls in turns, on a GPU of which everything is known: their seconds, their clock, their joules."""

import time
from collections.abc import Callable

import pytest

from microbench.measure import alternate as room
from microbench.measure.alternate import FLUSHED_L2S, alternate
from tests.cpu.scripted_device import ScriptedDevice


def call(
    device: ScriptedDevice, warm_us: float, cold_us: float = 0.0, told: list[str] | None = None, name: str = ""
) -> Callable[[], None]:
    """A call that takes so long from a cold L2, and so long again from a warm one."""

    def run() -> None:
        missed = device.written_bytes >= device.l2_bytes
        device.now_ns += 1e3 * (cold_us if missed and cold_us else warm_us)
        device.written_bytes = 0
        if told is not None:
            told.append(name)

    return run


def test_each_call_takes_its_own_seconds_from_a_cold_cache_at_the_clock_of_the_gpu():
    device = ScriptedDevice(mhz=1410.0)
    found = alternate(device, {"a": call(device, 20, 90), "b": call(device, 7, 300)}, "run", repeats=5)
    assert found["a"].seconds == pytest.approx([90e-6] * 5) and found["b"].seconds == pytest.approx([300e-6] * 5)
    assert found["a"].clock_mhz == pytest.approx(1410, rel=0.01) and found["b"].clock_mhz == pytest.approx(
        1410, rel=0.01
    )


def test_the_order_is_drawn_anew_each_round_and_again_the_same_for_the_same_run():
    def order(seed: str) -> list[str]:
        device, told = ScriptedDevice(), []
        names = "abcdefgh"
        alternate(device, {each: call(device, 10, told=told, name=each) for each in names}, seed, repeats=4)
        rounds = ["".join(told[at : at + len(names)]) for at in range(0, len(told), len(names))]
        assert all(sorted(each) == sorted(names) for each in rounds)
        return rounds

    assert len(set(order("one"))) > 1 and order("one") == order("one") != order("two")


def test_the_flush_is_larger_than_the_cache():
    device, written = ScriptedDevice(), []
    alternate(device, {"a": lambda: written.append(device.written_bytes)}, "run", repeats=2)
    assert min(written) >= FLUSHED_L2S * device.l2_bytes


def test_a_call_finds_nothing_in_the_cache_that_has_to_go_back():
    device, changed = ScriptedDevice(), []

    def run() -> None:
        changed.append(device.changed_bytes)
        device.write(1 << 30)  # its own output

    found = alternate(device, {"a": run, "b": run}, "run", repeats=2)
    assert changed == [0] * 4 and found["a"].l2_read


def test_what_disturbed_a_round_stands_beside_every_call_of_it():
    device = ScriptedDevice(disturbed=("busy", "throttled:power-cap"))
    found = alternate(device, {"a": call(device, 10), "b": call(device, 10)}, "run", repeats=2)
    assert {each.flags for each in found.values()} == {("busy", "throttled:power-cap")}


@pytest.mark.parametrize("watts", [640.0, None])
def test_the_clock_and_the_power_stand_beside_each_sample(watts):
    device = ScriptedDevice(mhz=1650.0, watts=watts)
    found = alternate(device, {"a": call(device, 200), "b": call(device, 300)}, "run", repeats=3)["a"]
    assert found.clocks_mhz == pytest.approx([1650.0] * 3, rel=0.01) and found.power_w == (watts,) * 3


@pytest.mark.parametrize("counts", [True, False])
def test_a_second_of_one_call_alone_tells_its_joules(monkeypatch, counts):
    """The wall's clock is the GPU's here, and the GPU takes 500 W."""
    device = ScriptedDevice()
    monkeypatch.setattr(time, "monotonic", lambda: device.now_ns * 1e-9)
    monkeypatch.setattr(room.nvml, "energy_joules", lambda gpu: 500 * gpu.now_ns * 1e-9 if counts else None)
    found = alternate(device, {"a": call(device, 400), "b": call(device, 10)}, "run", repeats=3, sustained=("a",))
    alone = found["a"].sustained
    assert found["b"].sustained is None and alone is not None
    assert alone.seconds == pytest.approx(400e-6) and alone.clock_mhz == pytest.approx(device.mhz, rel=1e-3)
    assert (alone.joules == pytest.approx(500 * 400e-6, rel=1e-3)) if counts else alone.joules is None
