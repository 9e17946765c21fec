"""Whole calls beside one another on a GPU, whoever wrote them: in turns, from a cold L2, with the clock each ran at.

What is read before each call fills the L2 with lines that nobody changed, as a layer's weights do. Until 2026-11-26 a
memset did, and the call paid for what went back to DRAM meanwhile (l2_write_back.py): one query of 32 x 12 heads on 512
keys of head dim 40 took an H100 26.3 us behind it, and 19.4 behind a read.

The host has to be ahead, or its launch stands between the two events: a read alone was over before some hosts had come
to the call, and 25 us became 40. Memsets before it, which cost the host little, give it some 150 us more.

The order is drawn anew each round, from the run's id: what ran before a call heats the GPU, and moved times by up to
3 % where one call always stood behind the same other. Clock stamps stand outside of the two events that time a call.
"""

import math
import random
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from microbench.machine import nvml
from microbench.measure.cuda import clock_between, stamp
from microbench.measure.timed import Sustained, Timed

if TYPE_CHECKING:
    from microbench.device.cuda import CudaDevice

REPEATS = 15
SUSTAINED_S = 1.0
AHEAD = 2  # memsets
L2_READ = True  # how this module fills the L2, as rows of what it times tell (False: by a memset)
FLUSHED_L2S = 4  # so many times the L2 are read: what is read last stays, and one size leaves some of the rest


def alternate(
    device: "CudaDevice",
    calls: Mapping[str, Callable[[], Any]],
    seed: str,
    stream: int = 0,
    repeats: int = REPEATS,
    sustained: Collection[str] = (),
) -> dict[str, Timed]:
    """Time calls that enqueue their work on `stream` (a cudaStream_t), `repeats` times each.

    Those of `sustained` run alone afterwards, for a second each. Raises DeviceError.
    """
    cupy = device.cupy
    on = cupy.cuda.ExternalStream(stream)
    seconds: dict[str, list[float]] = {name: [] for name in calls}
    mhz: dict[str, list[float]] = {name: [] for name in calls}
    order, draw = list(calls), random.Random(seed)
    with device.guard("time calls in turns"), on:
        words = math.ceil(FLUSHED_L2S * (device.machine.l2_bytes or 2**26) / 8)
        scratch, other = (cupy.zeros(words, np.uint64) for _ in range(2))
        flags, watts = set(device.flags()), list[float | None]()
        for _ in range(repeats):
            draw.shuffle(order)
            for name in order:
                for _ in range(AHEAD):
                    scratch.fill(1)
                other.max()
                took, clock = _bracketed(device, on, calls[name])
                seconds[name].append(took)
                mhz[name].append(clock)
            flags |= set(device.flags())
            watts.append(device.power_w())
        found = {
            name: Timed(
                *(tuple(seconds[name]), float(np.nanmedian(mhz[name])), tuple(sorted(flags))),
                clocks_mhz=tuple(None if math.isnan(clock) else clock for clock in mhz[name]),
                power_w=tuple(watts),
                l2_read=L2_READ,
            )
            for name in calls
        }
        for name in sustained:
            alone = _sustained(device, on, calls[name], float(np.median(seconds[name])))
            found[name] = replace(found[name], sustained=alone)
    return found


def _bracketed(device: "CudaDevice", stream: Any, call: Callable[[], Any]) -> tuple[float, float]:
    """(seconds, SM MHz) of one call."""
    event = device.cupy.cuda.Event
    begin, end, before = event(), event(), stamp(device)
    begin.record(stream)
    call()
    end.record(stream)
    after = stamp(device)
    stream.synchronize()
    clock, _ = clock_between(before.get(), after.get())
    return device.cupy.cuda.get_elapsed_time(begin, end) * 1e-3, clock


def _sustained(device: "CudaDevice", stream: Any, call: Callable[[], Any], seconds: float) -> Sustained:
    """A second of one call alone. NVML counts energy every tenth of a second or so: that is the error of the joules."""
    calls = max(1, math.ceil(SUSTAINED_S / seconds))
    joules, started, total = nvml.energy_joules(device.gpu), time.monotonic(), 0.0

    def many() -> None:
        for _ in range(calls):
            call()

    total, clock = _bracketed(device, stream, many)
    spent = nvml.energy_joules(device.gpu)
    elapsed = time.monotonic() - started
    # The counter's span is a little longer than the calls': the energy is scaled to theirs.
    each = None if joules is None or spent is None else (spent - joules) * total / elapsed / calls
    return Sustained(total / calls, clock, each)
