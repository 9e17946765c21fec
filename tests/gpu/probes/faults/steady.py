"""A well-behaved probe of many slow points: there is time to interrupt it, and to start another run beside it."""

import os
import time

from microbench.machine.arch import CUDA
from microbench.measure.launch import Bench, Launch
from microbench.point import Point
from microbench.probe import Axis, Build, Metric, Overhead, Probe, Sample, SassContract


def builds(_: Point) -> tuple[Build, ...]:
    """One kernel that only exits."""
    return (Build((), SassContract((), "kernel", overhead=(Overhead(("LDC", "MOV", "IMAD.MOV", "NOP"), 0, 2),))),)


def run(bench: Bench, point: Point) -> list[Sample]:
    """Nanoseconds of one launch, and as a flag the worker's process number."""
    (kernel,) = bench.kernels(point)
    measured = bench.timed(Launch(kernel, 1, 32, ()))
    time.sleep(0.25)
    return [measured.sample("kernel_ns", 1e9, f"worker:{os.getpid()}")]


PROBE = Probe(
    asks="Is a probe measured beside all those that fail?",
    archs=CUDA,
    axes=(Axis("size", tuple(range(40)), quick=(0, 1, 2)),),
    metrics=(Metric("kernel_ns", "ns"),),
    builds=builds,
    run=run,
)
