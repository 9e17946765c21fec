"""A load for seconds: what is left of a rate once the chip is hot and its power limit has set the clock.

A burst of milliseconds runs before the regulator has answered, and on a cool chip; on an H100 it is up to 10 % faster.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from microbench.probe import Sample


@dataclass(frozen=True)
class Second:
    """What one second of the load gave; None where the board does not count its energy or tell its temperature."""

    seconds_a_launch: float
    clock_mhz: float
    watts: float | None
    celsius: float | None


def watched(
    seconds: int,
    load: Callable[[float], tuple[int, float, float]],
    joules: Callable[[], float | None],
    celsius: Callable[[], float | None],
) -> tuple[Second, ...]:
    """So many seconds of `load`, which runs for about the time that it is told.

    It gives the number of launches, the seconds that they took by the GPU's clock, and the SM's MHz meanwhile.
    """
    found = []
    for _ in range(seconds):
        before, begin = joules(), time.perf_counter()
        launches, took, mhz = load(1.0)
        after, end = joules(), time.perf_counter()
        watts = (after - before) / (end - begin) if before is not None and after is not None else None
        found.append(Second(took / launches, mhz, watts, celsius()))
    return tuple(found)


def samples(found: tuple[Second, ...], work: float) -> list[Sample]:
    """`work` a launch over each second's time, and its W and °C: median, least, most, and every second as a map.

    Of the watts the mean: an H200 counts its energy ten times a second, so that one second is known to 10 % only, and
    the mean is what was counted from the first second to the last.
    """
    each: dict[str, list[float | None]] = {
        "sustained_flops_per_s": [work / second.seconds_a_launch for second in found],
        "power_w": [second.watts for second in found],
        "temperature_c": [second.celsius for second in found],
    }
    mhz = float(np.median([second.clock_mhz for second in found]))
    told = {name: [value for value in values if value is not None] for name, values in each.items()}
    middle = {name: np.mean(known) if name == "power_w" else np.median(known) for name, known in told.items() if known}
    return [
        Sample(name, float(value), min(told[name]), max(told[name]), len(told[name]), mhz, values=tuple(each[name]))
        for name, value in middle.items()
    ]
