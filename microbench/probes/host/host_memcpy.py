"""One thread's memcpy, through NumPy: bytes copied per second, from what fits the L2 to what fits no cache."""

import numpy as np

from microbench.machine import cpu as host_cpu
from microbench.machine.arch import HOST, KIB, Machine
from microbench.measure.host import HostBench
from microbench.point import Point
from microbench.probe import Axis, Bound, Constant, Metric, Probe, Sample
from microbench.shapes.lap import at_most

MIB = KIB * KIB
SIZES = (128 * KIB, 1 * MIB, 8 * MIB, 64 * MIB)
STORED_BYTES_PER_CLK = 64


def run(bench: HostBench, point: Point) -> list[Sample]:
    nbytes = point["copied_bytes"]
    memory = bench.empty(2 * nbytes)
    bench.touch([memory])
    source, target = (memory.array(np.uint8, i * nbytes, nbytes) for i in range(2))

    def work(times: int) -> None:
        for _ in range(times):
            np.copyto(target, source)

    return [bench.alone(work).flagged(*memory.page_flag()).rate("copied_bytes_per_s", nbytes)]


def too_large(machine: Machine, point: Point) -> str | None:
    """Both buffers together take at most a quarter of the memory."""
    too_many = 2 * point["copied_bytes"] > machine.dram_bytes / 4
    return "larger than a quarter of this machine's memory" if too_many else None


def stores(machine: Machine, _: Point) -> float:
    return STORED_BYTES_PER_CLK * host_cpu.fastest_hz(machine)


STORED = "one 64-byte store a clock"
PROBE = Probe(
    asks="How many bytes per second does one thread's memcpy copy on this CPU, by size?",
    archs=HOST,
    axes=(Axis("copied_bytes", SIZES, quick=SIZES[1::2]),),
    metrics=(Metric("copied_bytes_per_s", "B/s", Bound(f"{STORED} at the highest clock", upper=stores)),),
    run=run,
    skip=too_large,
    constants=(Constant("memcpy_bytes_per_s", "copied_bytes_per_s", at_most("copied_bytes")),),
)
