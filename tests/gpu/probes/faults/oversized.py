"""A launch that asks for more shared memory than any SM has, at its second point."""

import os

from microbench.arch import CUDA, KIB
from microbench.measure.cuda import CudaBench, Launch
from microbench.probe import Axis, Build, Metric, OpCount, Point, Probe, Sample, SassContract

SMEM_BYTES = {"before": 4 * KIB, "fault": KIB * KIB, "after": 4 * KIB}


def builds(_: Point) -> tuple[Build, ...]:
    """The first thread's store into shared memory stands under a predicate, hence among the overhead."""
    others = ("LDC", "LDCU", "ULDC", "MOV", "UMOV", "IMAD", "IMAD.MOV", "IMAD.WIDE", "S2R", "S2UR", "ISETP", "ULEA")
    more = ("LEA", "IADD3", "UIADD3", "BRA", "BSSY", "BSYNC", "BAR", "LDG", "STS", "HFMA2", "NOP", "UPRMT", "UR2UP")
    contract = SassContract((OpCount("STG", 1),), "kernel", overhead=(*others, *more), overhead_max=40)
    return (Build((), contract),)


def run(bench: CudaBench, point: Point) -> list[Sample]:
    """Nanoseconds of one launch, and as a flag the worker's process number."""
    (kernel,) = bench.kernels(point)
    out = bench.empty(4 * 32)
    measured = bench.timed(Launch(kernel, 1, 32, (out,), SMEM_BYTES[point["step"]]))
    return [measured.sample("kernel_ns", 1e9, f"worker:{os.getpid()}")]


PROBE = Probe(
    asks="Does the suite go on after a launch that cannot be had?",
    archs=CUDA,
    axes=(Axis("step", ("before", "fault", "after")),),
    metrics=(Metric("kernel_ns", "ns"),),
    builds=builds,
    run=run,
)
