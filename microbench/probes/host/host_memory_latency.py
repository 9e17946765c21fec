"""The latency ladder of a CPU: one pointer chase over growing footprints shows its caches, DRAM, and where each ends.

Every line of 64 bytes is used once a lap, in random order. The ring is written in the order in which it is walked, so a
footprint larger than every cache is met as a lap would leave it; one of up to 16 MiB is walked once before each timed
piece. Huge pages are asked for, and rows without them are flagged; a hypervisor may still back them with small ones,
and page walks are then part of the curve.
"""

from typing import Any

import numpy as np

from microbench.compile.host_code import compiled, load_word
from microbench.machine import cpu as host_cpu
from microbench.machine.arch import HOST, KIB, Machine
from microbench.measure.host import HostBench
from microbench.point import Point
from microbench.probe import Axis, Constant, Probe, Sample
from microbench.results.shelves import cache_latency, cache_size, memory_latency
from microbench.shapes.chain import times
from microbench.shapes.lap import latency_metrics

LINE_BYTES = 64
WARM_LINES = 2**18
MIB = KIB * KIB
AXIS = "footprint_bytes"


def footprints(inside: int = 4) -> tuple[int, ...]:
    """4 KiB to 2 GiB: `inside` to the octave where caches end (16 KiB to 32 MiB), four up to 64 MiB, two beyond."""
    caches = {round(16 * 2 ** (i / inside)) * KIB for i in range(inside * 11 + 1)}
    edge = {round(32 * 1024 * 2 ** (i / 4)) * KIB for i in range(4 + 1)}
    memory = {round(64 * 2 ** (i / 2)) * MIB for i in range(2 * 5 + 1)}
    return tuple(sorted({4 * KIB} | ({8 * KIB} if inside > 2 else set()) | caches | edge | memory))


def too_large(machine: Machine, point: Point) -> str | None:
    """A quarter of the memory is the most that a probe takes; eight times the last cache is all that it needs.

    The last octave of the sweep then lies beyond four times that cache. Where the memory is too small for twice the
    cache, no point runs: the ladder would end on a cache, and nothing in it would say so.
    """
    last = host_cpu.caches().last_bytes or 64 * MIB
    most = machine.dram_bytes / 4
    if most < 2 * last:
        return "a quarter of this machine's memory holds less than twice its last cache, so no ladder would reach DRAM"
    if point[AXIS] > most:
        return "larger than a quarter of this machine's memory"
    enough = max(8 * last, 64 * MIB)
    return "beyond eight times the last cache, where the ladder has ended" if point[AXIS] > enough else None


@compiled()
def link(words: Any, order: Any, base: int, step: int) -> None:
    """Make lines order[0], order[1], ... a ring of addresses."""
    for i in range(order.size):
        after = order[i + 1] if i + 1 < order.size else order[0]
        words[order[i] * step] = base + np.uint64(after) * np.uint64(8 * step)


@compiled()
def chase(address: int, loads: int) -> int:
    for _ in range(loads):
        address = load_word(address)
    return address


def run(bench: HostBench, point: Point) -> list[Sample]:
    """Time per load. Each timed piece goes on where the last one stopped, so a lap meets every line once."""
    memory = bench.empty(point[AXIS])
    lines = point[AXIS] // LINE_BYTES
    order = np.arange(lines, dtype=np.uint32)
    bench.rng.shuffle(order)
    link(memory.array(np.uint64), order, np.uint64(memory.address), LINE_BYTES // 8)
    place = np.uint64(memory.address + LINE_BYTES * int(order[0]))

    def walk(loads: int) -> None:
        nonlocal place
        place = np.uint64(chase(place, loads))

    warm = (lambda: walk(lines)) if lines <= WARM_LINES else None
    return bench.alone(walk, prelude=warm).flagged(*memory.page_flag()).latency()


ONE_CLOCK = "a load takes at least one clock"
PROBE = Probe(
    asks="How long does a load take from each cache of this CPU and from DRAM, and how large is each?",
    archs=HOST,
    axes=(Axis(AXIS, footprints(), quick=footprints(inside=2)),),
    metrics=latency_metrics(ONE_CLOCK, f"{ONE_CLOCK} at the highest clock", least_clocks=1.0),
    run=run,
    skip=too_large,
    constants=(
        *times("l1_latency", cache_latency(0, AXIS)),
        *times("l2_latency", cache_latency(1, AXIS)),
        Constant("l3_latency_ns", "latency_ns", cache_latency(2, AXIS)),
        Constant("dram_latency_ns", "latency_ns", memory_latency(AXIS)),
        *(Constant(f"l{n + 1}_size_bytes", "latency_cycles", cache_size(n, AXIS), unit="bytes") for n in range(3)),
    ),
)
