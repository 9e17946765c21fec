"""Three times around an empty kernel, which are three quantities.

In a graph of kernels that each depend on the one before, from one start to the next; from an event before to an event
after one such kernel; and from the host's call of a launch to the end of its wait, which holds CuPy's call.

Between two events the kernel is behind a memset, as a call is behind the layer before it: the host has long come to the
launch, and the kernel's code comes from DRAM. Until 2026-11-26 nothing ran before it, so that the first event stood
there before the host came to the launch: 3.3 us on one H100's host, and 4.5 on another's.
"""

import time

import numpy as np

from microbench.machine.arch import CUDA
from microbench.measure.launch import Bench, Launch
from microbench.point import Point
from microbench.probe import Bound, Build, Constant, Metric, Overhead, Probe, Sample, SassContract
from microbench.results.curves import at

NODES = 256


def builds(_: Point) -> tuple[Build, ...]:
    """One kernel that only exits; ptxas may load the stack pointer first, which nothing uses."""
    return (Build((), SassContract((), "kernel", overhead=(Overhead(("LDC", "MOV", "IMAD.MOV", "NOP"), 0, 2),))),)


def run(bench: Bench, point: Point) -> list[Sample]:
    """Per node of a 256-node graph; around one node, from a cold L2; launch and synchronise from the host."""
    (kernel,) = bench.kernels(point)
    launch = Launch(kernel, 1, 32, ())
    node, alone = bench.timed(launch, inner=NODES), bench.timed(launch, cold=True)
    host = np.array([_round_trip_ns(bench, launch) for _ in range(200)])
    low, middle, high = np.quantile(host, [0.05, 0.5, 0.95])
    return [
        node.sample("graph_node_ns", 1e9),
        alone.sample("empty_kernel_ns", 1e9),
        Sample("host_round_trip_ns", middle, low, high, len(host), node.clock_mhz, ("includes CuPy's call",)),
    ]


def _round_trip_ns(bench: Bench, launch: Launch) -> float:
    begin = time.perf_counter_ns()
    bench.launch(launch)
    bench.synchronize()
    return float(time.perf_counter_ns() - begin)


def _one_clock_ns(machine: object, _: Point) -> float | None:
    hz = getattr(machine, "clock_hz", None)
    return 1e9 / hz if hz else None


FLOOR = Bound("no kernel takes less than one clock", lower=_one_clock_ns)

CONSTANTS = {
    "graph_node_ns": "graph_kernel_interval_ns",
    "empty_kernel_ns": "event_to_event_empty_kernel_ns",
    "host_round_trip_ns": "host_launch_and_synchronize_ns",
}
PROBE = Probe(
    asks="What does launching an empty kernel cost, in a graph and from the host?",
    archs=CUDA,
    metrics=(
        Metric("graph_node_ns", "ns", FLOOR),
        Metric("empty_kernel_ns", "ns", FLOOR),
        Metric("host_round_trip_ns", "ns", FLOOR, governed_by="host"),
    ),
    builds=builds,
    run=run,
    constants=tuple(Constant(constant, metric, at()) for metric, constant in CONSTANTS.items()),
)
