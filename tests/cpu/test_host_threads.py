"""microbench.device.host_threads: pinned threads that start together, and the measured clock."""

import os
import threading

import pytest

from microbench.device.host import HostDevice
from microbench.errors import DeviceError
from microbench.measure.host import HostBench


def test_every_unit_of_every_work_is_done_on_its_own_thread(device: HostDevice, bench: HostBench) -> None:
    done: list[list[int]] = [[] for _ in range(bench.threads)]
    threads = [0] * bench.threads

    def work(which: int, units: int) -> None:
        threads[which] = threading.get_ident()
        done[which].append(units)

    device.pool.team(bench.threads).run([lambda n, i=i: work(i, n) for i in range(bench.threads)], 7)
    assert done == [[7]] * bench.threads and len({*threads, threading.get_ident()}) == bench.threads + 1


@pytest.mark.skipif(not hasattr(os, "sched_getaffinity"), reason="this system cannot pin a thread")
def test_workers_are_pinned_and_the_caller_is_not(device: HostDevice, bench: HostBench) -> None:
    before = os.sched_getaffinity(0)
    seen: list[set[int]] = []
    device.pool.team(1).run([lambda _: seen.append(os.sched_getaffinity(0))], 1)
    bench.library(lambda n: [seen.append(os.sched_getaffinity(0)) for _ in range(n)])
    assert [len(seen[0]), seen[-1]] == [1, before] and os.sched_getaffinity(0) == before


def test_a_failing_work_is_raised_and_the_team_works_on(device: HostDevice, bench: HostBench) -> None:
    team = device.pool.team(bench.threads)
    with pytest.raises(ZeroDivisionError):
        team.run([lambda _: 1 // 0] + [lambda _: None] * (bench.threads - 1), 1)
    assert team.run([lambda _: None] * bench.threads, 1) >= 0


def test_more_threads_than_cores_are_refused(device: HostDevice, bench: HostBench) -> None:
    with pytest.raises(DeviceError, match="may use"):
        device.pool.team(bench.threads + 1)


def test_the_clock_is_one_that_a_cpu_can_have(device: HostDevice) -> None:
    assert 0 < device.pool.clock_mhz() < 10_000
