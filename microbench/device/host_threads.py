"""One pinned thread per usable core, started together, each reading the timer for itself; and the measured clock."""

import os
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any

from microbench.compile.host_code import compiled
from microbench.errors import DeviceError
from microbench.machine import cpu as host_cpu

# Two dependent integer operations a step, one clock each on every 64-bit core since Core 2 and Cortex-A57.
CLOCKS_PER_STEP = 2
CLOCK_STEPS = 50_000

Work = Callable[[int], object]
Prelude = Callable[[], object]


class Pool:
    """One pinned worker thread per usable core. Kernels release the interpreter lock, so they run side by side."""

    def __init__(self) -> None:
        self._cores = host_cpu.cores()
        self._workers = [ThreadPoolExecutor(1, f"core-{i}", _pin, (core,)) for i, core in enumerate(self._cores)]
        self._free = ThreadPoolExecutor(1, "unpinned")

    def team(self, size: int) -> "Team":
        """The first `size` workers. Raises DeviceError where there are fewer."""
        if size > len(self._workers):
            raise DeviceError(f"{size} threads were asked for, but this process may use {len(self._workers)} cores.")
        return Team(self._workers[:size])

    def unpinned(self) -> "Team":
        return Team([self._free])

    def clock_mhz(self) -> float:
        """The first core's clock now: a chain of dependent one-clock operations, the quickest of a few."""
        mhz: float = self._workers[0].submit(_clock_mhz).result()
        return mhz

    def close(self) -> None:
        for worker in (*self._workers, self._free):
            worker.shutdown()


class Team:
    def __init__(self, workers: list[ThreadPoolExecutor]) -> None:
        self._workers = workers
        self._gate = threading.Barrier(len(workers))

    def run(self, works: list[Work], units: int, prelude: Prelude | None = None) -> float:
        """Seconds from the first worker's start to the last one's end; each does the `prelude` before, untimed."""
        pairs = zip(self._workers, works, strict=True)
        stamps = [worker.submit(self._one, work, units, prelude) for worker, work in pairs]
        spans: list[tuple[int, int]] = [stamp.result() for stamp in stamps]
        return (max(end for _, end in spans) - min(start for start, _ in spans)) * 1e-9

    def _one(self, work: Work, units: int, prelude: Prelude | None) -> tuple[int, int]:
        if prelude is not None:
            prelude()
        self._gate.wait()
        start = time.perf_counter_ns()
        work(units)
        return start, time.perf_counter_ns()


def _pin(core: int) -> None:
    if hasattr(os, "sched_setaffinity"):
        with suppress(OSError):  # a sandbox may forbid it; the thread then runs where the system puts it
            os.sched_setaffinity(0, {core})  # 0 is the calling thread


@compiled()
def _clock_chain(x: int, a: int, b: int, steps: int) -> Any:
    for _ in range(steps):
        x = (x + a) ^ b
    return x


def _clock_mhz() -> float:
    def once(steps: int) -> int:
        begin = time.perf_counter_ns()
        _clock_chain(1, 3, 5, steps)
        return time.perf_counter_ns() - begin

    once(1)
    short = min(once(0) for _ in range(5))
    long = min(once(CLOCK_STEPS) for _ in range(8))
    ns = float(max(long - short, 1))
    return CLOCKS_PER_STEP * CLOCK_STEPS * 1e3 / ns
