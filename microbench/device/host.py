"""HostDevice: the CPU of this machine, opened inside a worker process."""

import os
import time
from dataclasses import dataclass

import psutil

from microbench.device.host_threads import Pool
from microbench.device.protocol import Kind
from microbench.machine import cpu as host_cpu
from microbench.machine.arch import DeviceFacts

# More of the usable cores' time than this gone to others during a point makes its rows 'busy' or 'stolen'.
SHARE_OF_OTHERS = 0.1
# /proc/stat counts in ticks of 10 ms: over a shorter span nothing can be said, so the last verdict stands.
SHORTEST_SPAN_S = 0.2


@dataclass(frozen=True)
class Usage:
    """CPU seconds so far: of every process on the usable cores, of this process, and those the hypervisor gave away."""

    at: float
    everyone: float
    own: float
    stolen: float


def trouble(before: Usage, now: Usage, core_count: int) -> tuple[str, ...]:
    """'busy' where other processes took the cores between two readings, 'stolen' where the hypervisor did."""
    span = (now.at - before.at) * core_count
    others = (now.everyone - before.everyone) - (now.own - before.own)
    stolen = now.stolen - before.stolen
    return tuple(word for word, seconds in (("busy", others), ("stolen", stolen)) if seconds > SHARE_OF_OTHERS * span)


class HostDevice:
    """This CPU: as many threads as affinity and cgroup allow, each pinned to its core."""

    kind: Kind = "host"

    def __init__(self) -> None:
        self.machine = host_cpu.machine()
        self.pool = Pool()
        self._last = usage()
        self._flags: tuple[str, ...] = ()

    def facts(self) -> DeviceFacts:
        return DeviceFacts(sm_clock_mhz=round(self.pool.clock_mhz(), 1))

    def flags(self) -> tuple[str, ...]:
        """'busy', 'stolen': who else had the cores since the last call that could tell."""
        now = usage()
        if now.at - self._last.at >= SHORTEST_SPAN_S:
            self._flags = trouble(self._last, now, len(host_cpu.cores()))
            self._last = now
        return self._flags

    def close(self) -> None:
        self.pool.close()


def usage() -> Usage:
    """CPU seconds of the usable cores and of this process, now."""
    every = psutil.cpu_times(percpu=True)
    times = [every[core] for core in host_cpu.cores() if core < len(every)]
    idle = ("idle", "iowait", "steal", "guest", "guest_nice")  # guest time is counted in user already
    busy = sum(sum(value for name, value in core._asdict().items() if name not in idle) for core in times)
    own = os.times()
    return Usage(time.monotonic(), busy, own.user + own.system, sum(getattr(core, "steal", 0.0) for core in times))
