"""A kernel that never ends at its second point: the flag it waits for stays down."""

import os

import numpy as np

from microbench.machine.arch import CUDA
from microbench.measure.launch import Bench, Launch
from microbench.point import Point
from microbench.probe import Axis, Build, Metric, OpCount, Overhead, Probe, Sample
from microbench.shapes.chain import loop


def builds(_: Point) -> tuple[Build, ...]:
    """One load of the flag a trip."""
    whole = Overhead(("IMAD.MOV", "MOV", "ULDC", "LDC", "LDCU", "ISETP", "EXIT", "NOP"), 0, 6)
    return (Build((), loop(OpCount("LDG.E.STRONG.SYS", 1), overhead=(whole,), clocks=0)),)


def run(bench: Bench, point: Point) -> list[Sample]:
    """Nanoseconds of one launch, and as a flag the worker's process number."""
    (kernel,) = bench.kernels(point)
    flag = bench.array(np.array([point["step"] != "fault"], np.int32))
    measured = bench.timed(Launch(kernel, 1, 32, (flag,)))
    return [measured.sample("kernel_ns", 1e9, f"worker:{os.getpid()}")]


PROBE = Probe(
    asks="Is the worker ended when a kernel does not come back?",
    archs=CUDA,
    axes=(Axis("step", ("before", "fault", "after")),),
    metrics=(Metric("kernel_ns", "ns"),),
    builds=builds,
    run=run,
    time_limit_s=8.0,  # NVRTC and the disassembler have to answer within it as well
)
