"""Whole calls beside one another on this CPU, whoever wrote them: in turns, in an order drawn anew each round.

They alternate call by call, so that a slow stretch of the machine meets all of them, and without a rest: OpenMP's
threads spin for some milliseconds after a call of torch's on the next one's cores, as they do in a model.
"""

import random
import time
from collections.abc import Callable, Hashable, Mapping
from typing import Any, TypeVar

from microbench.device.host import HostDevice
from microbench.measure.host import CLOCK_MOVED
from microbench.measure.timed import Timed

CALLS = 31  # timed calls of each
LONGEST_S = 2.0  # whose calls would take longer than this together gets fewer, at least FEWEST
FEWEST = 5
TRIES = 3  # where somebody had the cores meanwhile, or the clock moved

Name = TypeVar("Name", bound=Hashable)


def in_turns(device: HostDevice, calls: Mapping[Name, Callable[[], Any]], seed: str) -> dict[Name, Timed]:
    """Seconds of each call; a first, untimed turn compiles, loads and warms up. A disturbed run is made again."""
    repeats = _repeats(calls)
    draw, order = random.Random(seed), list(calls)
    for _ in range(TRIES):
        seconds: dict[Name, list[float]] = {name: [] for name in calls}
        device.flags()
        before = device.pool.clock_mhz()
        for _ in range(repeats):
            draw.shuffle(order)
            for name in order:
                start = time.perf_counter()
                calls[name]()
                seconds[name].append(time.perf_counter() - start)
        after = device.pool.clock_mhz()
        moved = ("clock-moved",) if abs(after - before) > CLOCK_MOVED * before else ()
        flags = tuple(sorted({*device.flags(), *moved}))
        if not flags:
            break
    return {name: Timed(tuple(times), (before + after) / 2, flags) for name, times in seconds.items()}


def _repeats(calls: Mapping[Name, Callable[[], Any]]) -> int:
    slowest = 0.0
    for call in calls.values():
        call()
        start = time.perf_counter()
        call()
        slowest = max(slowest, time.perf_counter() - start)
    return max(FEWEST, min(CALLS, int(LONGEST_S / slowest))) if slowest else CALLS
