"""microbench.device.host: this CPU as a device, and who else has its cores."""

import pytest

from microbench.device import open_device
from microbench.device.host import HostDevice, Usage, trouble, usage
from microbench.device.protocol import Device
from microbench.measure import open_bench
from microbench.measure.host import HostBench
from microbench.probes import named

BEFORE = Usage(at=10.0, everyone=100.0, own=50.0, stolen=5.0)


def after(others: float = 0.0, own: float = 0.0, stolen: float = 0.0) -> Usage:
    """One second later."""
    return Usage(11.0, 100.0 + others + own, 50.0 + own, 5.0 + stolen)


def test_the_door_opens_the_host() -> None:
    device: Device = open_device("host")
    assert isinstance(device, HostDevice) and device.machine.arch.name == "host"
    assert isinstance(open_bench(device, named("host_fma"), "host", quick=True), HostBench)
    assert (device.facts().sm_clock_mhz or 0) > 0 and set(device.flags()) <= {"busy", "stolen"}
    device.close()


@pytest.mark.parametrize(
    ("now", "said"),
    [
        (after(own=4.0), ()),
        (after(others=0.1, own=3.0), ()),
        (after(others=2.0, own=2.0), ("busy",)),
        (after(stolen=1.0), ("stolen",)),
        (after(others=1.0, stolen=1.0), ("busy", "stolen")),
    ],
)
def test_only_what_others_take_is_trouble(now: Usage, said: tuple[str, ...]) -> None:
    assert trouble(BEFORE, now, core_count=4) == said


def test_own_work_is_counted_as_own() -> None:
    before = usage()
    sum(range(2_000_000))
    now = usage()
    assert now.own > before.own and now.everyone >= before.everyone
