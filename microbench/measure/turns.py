"""Whole calls beside one another on this CPU, whoever wrote them: in turns, in an order drawn anew each round.

They alternate call by call, or burst by burst, so that a slow stretch of the machine meets all of them, without a rest:
OpenMP's threads spin for some milliseconds after a call of torch's on the next one's cores, as they do in a model.
"""

import random
import time
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from microbench.device.host import HostDevice
from microbench.measure.host import CLOCK_MOVED
from microbench.measure.timed import Timed

TRIES = 3  # where somebody had the cores meanwhile, or the clock moved

Call = Callable[[], Any]
Name = TypeVar("Name", bound=Hashable)


@dataclass(frozen=True)
class Rounds:
    """How many there are: `most`, but fewer where those of the slowest call would take longer than `longest_s`.

    With `burst_s` a turn is so many calls as the quickest makes in that time, at least one.
    """

    fewest: int = 5
    most: int = 31
    longest_s: float = 2.0
    burst_s: float = 0.0


USUAL = Rounds()


def in_turns(
    device: HostDevice, calls: Mapping[Name, Call], seed: str, rounds: Rounds | None = None
) -> dict[Name, Timed]:
    """Seconds of each call; a first, untimed turn compiles, loads and warms up. A disturbed run is made again."""
    repeats, burst = _repeats(calls, rounds or USUAL)
    draw, order = random.Random(seed), list(calls)
    for _ in range(TRIES):
        seconds: dict[Name, list[float]] = {name: [] for name in calls}
        device.flags()
        before = device.pool.clock_mhz()
        for _ in range(repeats):
            draw.shuffle(order)
            for name in order:
                seconds[name].append(_seconds(calls[name], burst))
        after = device.pool.clock_mhz()
        moved = ("clock-moved",) if abs(after - before) > CLOCK_MOVED * before else ()
        flags = tuple(sorted({*device.flags(), *moved}))
        if not flags:
            break
    return {name: Timed(tuple(times), (before + after) / 2, flags, burst=burst) for name, times in seconds.items()}


def _repeats(calls: Mapping[Name, Call], rounds: Rounds) -> tuple[int, int]:
    """Rounds, and calls in a burst."""
    took = []
    for call in calls.values():
        call()
        took.append(max(1e-9, _seconds(call, 1)))  # a clock may stand still
    burst = max(1, int(rounds.burst_s / min(took)))
    return max(rounds.fewest, min(rounds.most, int(rounds.longest_s / (max(took) * burst)))), burst


def _seconds(call: Call, times: int) -> float:
    start = time.perf_counter()
    for _ in range(times):
        call()
    return (time.perf_counter() - start) / times
