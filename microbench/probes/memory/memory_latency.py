"""The latency ladder: one pointer chase over growing footprints shows L1, L2 and DRAM, and where each one ends.

One thread on every SM follows the ring: so the L2 latency is the mean over all SMs and slices (near and far alike), and
rings larger than the L2 are met cold. Pages are CUDA's own (2 MiB): beyond the TLB's reach its misses are part of the
curve.
"""

from microbench.machine.arch import CUDA, KIB
from microbench.measure.launch import Bench
from microbench.point import Point
from microbench.probe import Axis, Probe, Sample
from microbench.results.curves import level
from microbench.shapes.chain import times
from microbench.shapes.chase import LINE_BYTES, METRICS, TWIN, builds, chase, too_large


def footprints() -> tuple[int, ...]:
    """4 KiB to 512 MiB, four to the octave, to whole lines."""
    return tuple(round(2 ** (i / 4) * 4 * KIB / LINE_BYTES) * LINE_BYTES for i in range(69))


def run(bench: Bench, point: Point) -> list[Sample]:
    """Latency of one load, in cycles and ns."""
    return chase(bench, point, chasers=bench.machine.sm_count).latency()


PROBE = Probe(
    asks="How long does a load take from L1, L2 and DRAM, and where does each end?",
    archs=CUDA,
    axes=(Axis("footprint_bytes", footprints(), quick=tuple(4 * KIB << i for i in range(18))),),
    metrics=METRICS,
    builds=builds,
    run=run,
    twin=TWIN,
    skip=too_large,
    constants=tuple(
        constant
        for name, number in (("l1", 0), ("l2", 1), ("dram", -1))
        for constant in times(f"{name}_latency", level(number, "footprint_bytes"))
    ),
)
