"""A kernel that writes to an address nobody allocated, at its second point: its GPU context is lost from then on."""

import os

import numpy as np

from microbench.machine.arch import CUDA
from microbench.measure.launch import Bench, Launch
from microbench.point import Point
from microbench.probe import Axis, Build, Metric, Overhead, Probe, Sample, SassContract
from microbench.shapes.accesses import store

NOWHERE = np.uint64(64)


def builds(_: Point) -> tuple[Build, ...]:
    """One store."""
    arguments = Overhead(("LDC", "LDCU", "ULDC", "MOV", "IMAD.MOV", "HFMA2", "NOP"), 0, 8)
    return (Build((), SassContract((store(32, 1),), "kernel", overhead=(arguments,))),)


def run(bench: Bench, point: Point) -> list[Sample]:
    """Nanoseconds of one launch, and as a flag the worker's process number."""
    (kernel,) = bench.kernels(point)
    memory = bench.empty(8)
    place = NOWHERE if point["step"] == "fault" else np.uint64(memory.data.ptr)
    measured = bench.timed(Launch(kernel, 1, 32, (place,)))
    return [measured.sample("kernel_ns", 1e9, f"worker:{os.getpid()}")]


PROBE = Probe(
    asks="Does a fresh worker go on after an illegal address?",
    archs=CUDA,
    axes=(Axis("step", ("before", "fault", "after")),),
    metrics=(Metric("kernel_ns", "ns"),),
    builds=builds,
    run=run,
)
