"""How host probes are timed: a kernel that repeats itself n times, one pinned thread for each core that takes part.

Seconds per unit are the slope between no unit and n: calls, the start of the threads and the clock's own cost are in
both and cancel. Interference (the hypervisor, a neighbour on the same physical core, interrupts) only ever adds time,
so the quickest repeat counts, at the higher of the clocks before and after; `high` is the repeats' 95 % quantile, and
shows how disturbed the machine was. Between campaigns the median counts, as on every device.
"""

import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from microbench.device.host_threads import Prelude, Team, Work
from microbench.errors import DeviceError
from microbench.machine import cpu as host_cpu
from microbench.measure.host_memory import Memory
from microbench.probe import Sample

if TYPE_CHECKING:
    from microbench.device.host import HostDevice

# The shorter of the two runs; thousands of times the resolution of perf_counter (some 50 ns) on every system we know.
CLOCK_MOVED = 0.05  # between the ends of a measurement: more is another clock
WINDOW_S = 0.4e-3
TEAM_WINDOW_S = 1e-3
WAKE_S = 1e-4
# Repeats end early where each is long; but never before this many.
BUDGET_S = 0.06
FEWEST = 3
MOST_UNITS = 2**40


@dataclass(frozen=True)
class Timing:
    """Seconds per unit of work, its spread over `n` pairs of runs, and the core clock meanwhile."""

    seconds: float
    low: float
    high: float
    n: int
    clock_mhz: float
    flags: tuple[str, ...] = ()

    def flagged(self, *flags: str) -> "Timing":
        return replace(self, flags=(*self.flags, *flags))

    def sample(self, metric: str, scale: float = 1.0) -> Sample:
        low, high = self.low * scale, self.high * scale
        return Sample(metric, self.seconds * scale, low, high, self.n, self.clock_mhz, self.flags)

    def rate(self, metric: str, work: float) -> Sample:
        """`work` per second: what one unit does, over this."""
        low, high = work / self.high, work / self.low
        return Sample(metric, work / self.seconds, low, high, self.n, self.clock_mhz, self.flags)

    def per_clock(self, metric: str, work: float) -> Sample:
        """`work` per core clock, at the measured clock."""
        return self.rate(metric, work / (self.clock_mhz * 1e6))

    def latency(self, scale: float = 1.0) -> list[Sample]:
        """The unit's duration times `scale` in ns, and in core clocks at the measured clock."""
        return [self.sample("latency_ns", scale * 1e9), self.sample("latency_cycles", scale * self.clock_mhz * 1e6)]


class HostBench:
    """What a host probe measures with. `threads` is how many cores it may use, `caches` their data caches."""

    def __init__(self, device: "HostDevice", quick: bool) -> None:
        self.machine, self.quick = device.machine, quick
        self.caches = host_cpu.caches()
        self.threads = device.machine.sm_count
        self.repeats = 8 if quick else 11
        self.rng = np.random.default_rng()
        self._pool = device.pool

    def build_info(self) -> None:
        """No cubin stands behind a host record."""

    def empty(self, nbytes: int) -> Memory:
        """Fresh memory whose pages nobody has touched, on huge pages where the system grants them."""
        return Memory(nbytes)

    def touch(self, memories: list[Memory]) -> None:
        """Write each memory once, from the core whose thread will use it, so that its pages lie near that core."""
        self._pool.team(len(memories)).run([memory.touch for memory in memories], 1)

    def alone(self, work: Work, prelude: Prelude | None = None) -> Timing:
        """Time `work(n)`, which does n units, on one core; the `prelude`, untimed, restores what strangers undid.

        A process that shares the core for a few milliseconds leaves no line of ours in its caches.
        """
        return self._timed(self._pool.team(1), [work], prelude=prelude)

    def library(self, work: Work) -> Timing:
        """Time `work(n)` of a library that brings its own threads, from a thread that is not pinned."""
        # Its threads wait for each other many times a call, so that undisturbed runs are rarer: look for one longer.
        return self._timed(self._pool.unpinned(), [work], patience=4)

    def together(self, works: list[Work]) -> Timing:
        """Time all works side by side, one to a core: seconds from the first start to the last end, per unit.

        Each `work(n)` does n units of its own; a rate counts the units of all. Raises DeviceError where the time does
        not grow with the work.
        """
        return self._timed(self._pool.team(len(works)), works)

    def _timed(self, team: Team, works: list[Work], patience: int = 1, prelude: Prelude | None = None) -> Timing:
        # Threads of a team wake one after another, tens of microseconds apart; a longer window makes that small.
        window = WINDOW_S if len(works) == 1 else max(TEAM_WINDOW_S, WAKE_S * len(works))
        team.run(works, 1)  # compiles or loads, and touches the data
        units = self._units(team, works, window)
        before = self._pool.clock_mhz()
        empty = min(team.run(works, 0) for _ in range(self.repeats))
        spans: list[float] = []
        end = time.monotonic() + patience * BUDGET_S
        while len(spans) < FEWEST or (len(spans) < patience * self.repeats and time.monotonic() < end):
            spans.append(team.run(works, units, prelude))
        after = self._pool.clock_mhz()
        seconds = np.maximum(np.array(spans) - empty, 0) / units
        value, high = float(seconds.min()), float(np.quantile(seconds, 0.95))
        if value <= 0:
            raise self._no_time()
        flags = ("clock-moved",) if abs(after - before) > CLOCK_MOVED * before else ()
        # The quickest run is the one at the highest clock.
        return Timing(value, value, high, len(spans), max(before, after), flags)

    def _units(self, team: Team, works: list[Work], window: float) -> int:
        units = 1
        while (seconds := min(team.run(works, units) for _ in range(3))) < window:
            if units > MOST_UNITS:
                raise self._no_time()
            units *= max(2, min(1000, int(window / max(seconds, 1e-7))))
        return units

    def _no_time(self) -> DeviceError:
        return DeviceError(
            f"More work took no more time on {self.machine.name}: the compiler removed it, or other processes hold the "
            "cores. Run again on an idle machine."
        )
