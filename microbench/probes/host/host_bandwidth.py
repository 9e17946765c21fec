"""Bandwidth of each cache and of DRAM, by threads: read, copy and triad over a footprint that lives in the level.

Bytes are those the program asks for, as STREAM counts them: a copy's two, a triad's three; that a store may first fetch
its line is not counted. Copies go through an exclusive or, since LLVM would make a plain one a call of memcpy (which is
host_memcpy's question).
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from microbench.compile.host_code import FUSED, compiled
from microbench.machine import cpu as host_cpu
from microbench.machine.arch import HOST, KIB, Machine
from microbench.measure.host import HostBench
from microbench.point import Point, Reducer
from microbench.probe import Axis, Bound, Constant, Metric, Probe, Sample
from microbench.results.curves import peak
from microbench.shapes.lap import at_least, at_most, threads_axis

MIB = KIB * KIB
ARRAYS = {"read": 1, "copy": 2, "triad": 3}
# Arrays a whole number of pages apart would meet in the same sets and look alike to the store buffer.
SKEW_BYTES = 17 * 64


@compiled()
def read(words: Any, laps: int) -> Any:
    """The sum of all words: an add of one clock never waits for another, so the loads decide."""
    total = np.int64(0)
    for _ in range(laps):
        for i in range(words.size):
            total += words[i]
    return total


@compiled()
def copy(words: Any, out: Any, laps: int) -> None:
    """Words ^ laps into out."""
    for _ in range(laps):
        for i in range(words.size):
            out[i] = words[i] ^ laps


@compiled(FUSED)
def triad(a: Any, b: Any, out: Any, laps: int) -> None:
    """The sum a + 3 b into out."""
    for _ in range(laps):
        for i in range(a.size):
            out[i] = a[i] + 3.0 * b[i]


def footprint_bytes(level: str, threads: int, caches: host_cpu.Caches, dram_bytes: int) -> int | None:
    """Bytes per thread that live in `level` and in none above it; None where this CPU has no such level."""
    l2 = caches.l2_bytes or caches.l1_bytes or 32 * KIB
    if level == "l1":
        return (caches.l1_bytes or 32 * KIB) // 2
    if level == "l2":
        return caches.l2_bytes // 2 if caches.l2_bytes else None
    if level == "l3":
        # An eighth, since a virtual machine shares its L3 with strangers; but clearly more than the L2.
        wanted = max(2 * l2, (caches.l3_bytes or 0) // 8 // threads)
        return wanted if wanted * threads <= (caches.l3_bytes or 0) // 2 else None
    total = min(max(4 * (caches.last_bytes or 16 * MIB), 64 * MIB), 512 * MIB, dram_bytes // 4)
    return max(total // threads, 4 * l2)


def no_such_level(machine: Machine, point: Point) -> str | None:
    """A CPU without an L3, or one so small that the threads' L2 caches hold as much."""
    if footprint_bytes(point["level"], point["threads"], host_cpu.caches(), machine.dram_bytes) is None:
        return f"this CPU has no {point['level']} that holds more than the caches above it"
    return None


def run(bench: HostBench, point: Point) -> list[Sample]:
    """Every thread on memory of its own, which it touches first, so that it lies on that thread's NUMA node."""
    kind, threads = point["kind"], point["threads"]
    nbytes = footprint_bytes(point["level"], threads, bench.caches, bench.machine.dram_bytes)
    assert nbytes is not None
    part = nbytes // ARRAYS[kind] // 64 * 64
    memories = [bench.empty(nbytes + ARRAYS[kind] * SKEW_BYTES) for _ in range(threads)]
    dtype = np.float64 if kind == "triad" else np.int64
    bench.touch(memories)
    works = [
        _work(kind, [memory.array(dtype, i * (part + SKEW_BYTES), part) for i in range(ARRAYS[kind])])
        for memory in memories
    ]
    timing = bench.together(works).flagged(*(memories[0].page_flag() if point["level"] == "dram" else ()))
    return [timing.rate("bandwidth_bytes_per_s", threads * ARRAYS[kind] * part)]


def _work(kind: str, arrays: list[Any]) -> Callable[[int], object]:
    kernel = {"read": read, "copy": copy, "triad": triad}[kind]
    return lambda laps: kernel(*arrays, laps)


def ports(machine: Machine, point: Point) -> float:
    """Two 64-byte loads and one 64-byte store a clock on every thread's core (the widest shipped), the kind's share."""
    per_clk = {"read": 128, "copy": 128, "triad": 192}[point["kind"]]
    return float(per_clk * point["threads"] * host_cpu.fastest_hz(machine))


def rate(name: str, reducer: Callable[..., Reducer], level: str, kind: str = "read") -> Constant:
    return Constant(f"{name}_per_s", "bandwidth_bytes_per_s", reducer("threads", level=level, kind=kind))


PORTS = "load and store ports of the cores"
PROBE = Probe(
    asks="How many bytes per second come from each cache of this CPU and from DRAM, by the number of threads?",
    archs=HOST,
    axes=(
        Axis("level", ("l1", "l2", "l3", "dram")),
        Axis("kind", tuple(ARRAYS), quick=("read", "copy")),
        threads_axis(),
    ),
    metrics=(Metric("bandwidth_bytes_per_s", "B/s", Bound(f"{PORTS} at the highest clock", upper=ports)),),
    run=run,
    skip=no_such_level,
    constants=(
        rate("l1_bandwidth_bytes", at_least, "l1"),
        rate("l2_bandwidth_bytes", at_least, "l2"),
        rate("l3_bandwidth_bytes", at_most, "l3"),
        rate("l3_bandwidth_bytes_one_thread", at_least, "l3"),
        rate("dram_bandwidth_bytes", peak, "dram"),
        rate("dram_bandwidth_bytes_one_thread", at_least, "dram"),
        rate("dram_copy_bytes", peak, "dram", "copy"),
    ),
)
