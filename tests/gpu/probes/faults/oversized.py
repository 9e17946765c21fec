"""A launch that asks for more shared memory than any SM has, at its second point."""

import os

from microbench.machine.arch import CUDA, KIB
from microbench.measure.launch import Bench, Launch
from microbench.point import Point
from microbench.probe import Axis, Build, Metric, Overhead, Probe, Sample, SassContract

SMEM_BYTES = {"before": 4 * KIB, "fault": KIB * KIB, "after": 4 * KIB}


def builds(_: Point) -> tuple[Build, ...]:
    """One kernel that only exits."""
    return (Build((), SassContract((), "kernel", overhead=(Overhead(("LDC", "MOV", "IMAD.MOV", "NOP"), 0, 2),))),)


def run(bench: Bench, point: Point) -> list[Sample]:
    """Nanoseconds of one launch, and as a flag the worker's process number."""
    (kernel,) = bench.kernels(point)
    measured = bench.timed(Launch(kernel, 1, 32, (), SMEM_BYTES[point["step"]]))
    return [measured.sample("kernel_ns", 1e9, f"worker:{os.getpid()}")]


PROBE = Probe(
    asks="Does the suite go on after a launch that cannot be had?",
    archs=CUDA,
    axes=(Axis("step", tuple(SMEM_BYTES)),),
    metrics=(Metric("kernel_ns", "ns"),),
    builds=builds,
    run=run,
)
