"""What it costs to run an empty kernel: as a node of a graph, alone, and seen from the host."""

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
    """Per node of a 256-node graph; between two events around one node; launch and synchronise from the host."""
    (kernel,) = bench.kernels(point)
    launch = Launch(kernel, 1, 32, ())
    node, alone = bench.timed(launch, inner=NODES), bench.timed(launch)
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

METRICS = ("graph_node_ns", "empty_kernel_ns", "host_round_trip_ns")
PROBE = Probe(
    asks="What does launching an empty kernel cost, in a graph and from the host?",
    archs=CUDA,
    metrics=tuple(Metric(name, "ns", FLOOR) for name in METRICS),
    builds=builds,
    run=run,
    constants=tuple(Constant(f"launch_{name}", name, at()) for name in METRICS),
)
