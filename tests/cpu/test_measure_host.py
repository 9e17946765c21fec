"""microbench.measure.host: slopes from disturbed clocks."""

import threading
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from microbench.errors import DeviceError
from microbench.measure.host import HostBench, Timing


class Clockwork:
    """A team whose time is known: a call's cost, a unit's cost, and now and then a disturbance."""

    def __init__(self, call: float, unit: float, disturbed: float = 0.0) -> None:
        self.call, self.unit, self.disturbed, self.runs = call, unit, disturbed, 0

    def run(self, works: list[Any], units: int, prelude: Any = None) -> float:
        self.runs += 1
        return self.call + units * self.unit + (self.disturbed if self.runs % 3 else 0.0)


def test_the_prelude_runs_before_each_timed_piece_on_its_thread(bench: HostBench) -> None:
    calls: list[tuple[str, int]] = []

    def work(units: int) -> None:
        calls.append(("work", threading.get_ident()))
        sum(range(200 * units))

    bench.alone(work, prelude=lambda: calls.append(("prelude", threading.get_ident())))
    prepared = [i for i, (name, _) in enumerate(calls) if name == "prelude"]
    assert len(prepared) >= 3 and all(calls[i + 1][0] == "work" for i in prepared)
    assert len({thread for _, thread in calls}) == 1


@pytest.mark.parametrize("disturbed", [0.0, 1e-2])
def test_neither_the_call_nor_a_disturbance_is_in_the_value(bench: HostBench, disturbed: float) -> None:
    timing = bench._timed(Clockwork(50e-6, 3e-9, disturbed), [lambda _: None])  # type: ignore[arg-type]
    assert timing.seconds == pytest.approx(3e-9, rel=1e-6) and timing.low <= timing.seconds <= timing.high
    assert (timing.high > 1.5 * timing.seconds) == (disturbed > 0)


def test_work_that_takes_no_time_is_an_error(bench: HostBench) -> None:
    with pytest.raises(DeviceError, match="no more time"):
        bench._timed(Clockwork(50e-6, 0.0), [lambda _: None])  # type: ignore[arg-type]


@given(st.floats(1e-10, 1e-2), st.floats(1, 1e3), st.floats(100, 6000))
def test_samples_hold_their_value_and_agree_in_both_units(seconds: float, spread: float, mhz: float) -> None:
    timing = Timing(seconds, seconds, seconds * spread, 9, mhz, ("busy",))
    ns, cycles = timing.latency()
    rate, per_clock = timing.rate("a_per_s", 64), timing.per_clock("a_per_clk", 64)
    for sample in (ns, cycles, rate, per_clock):
        assert sample.low <= sample.value <= sample.high
        assert (sample.n, sample.clock_mhz, sample.flags) == (9, mhz, ("busy",))
    assert cycles.value / ns.value == pytest.approx(mhz / 1e3)
    assert rate.value / per_clock.value == pytest.approx(mhz * 1e6) and rate.value * ns.value == pytest.approx(64e9)
