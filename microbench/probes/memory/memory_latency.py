"""The latency ladder: one pointer chase over growing footprints shows L1, L2 and DRAM, and where each one ends.

One thread on every SM follows the ring: so the L2 latency is the mean over all SMs and slices (near and far alike), and
rings larger than the L2 are met cold. Pages are CUDA's own (2 MiB): beyond the TLB's reach its misses are part of the
curve.
"""

from microbench.machine.arch import CUDA, KIB, Machine
from microbench.measure.launch import Bench
from microbench.point import Point
from microbench.probe import Axis, Bound, Metric, Probe, Sample
from microbench.results.curves import level
from microbench.shapes.chain import latency_metric, times
from microbench.shapes.chase import LINE_BYTES, TWIN, builds, chase, too_large


def footprints() -> tuple[int, ...]:
    """4 KiB to 512 MiB, four to the octave, to whole lines."""
    return tuple(round(2 ** (i / 4) * 4 * KIB / LINE_BYTES) * LINE_BYTES for i in range(69))


def run(bench: Bench, point: Point) -> list[Sample]:
    """Latency of one load, in cycles and ns."""
    return chase(bench, point, chasers=bench.machine.sm_count).latency()


WHY, LEAST_CYCLES = "a load's result comes at least one L1 pipeline later", 16


def least_ns(machine: Machine, _: Point) -> float | None:
    return LEAST_CYCLES * 1e9 / machine.clock_hz if machine.clock_hz else None


PROBE = Probe(
    asks="How long does a load take from L1, L2 and DRAM, and where does each end?",
    archs=CUDA,
    axes=(Axis("footprint_bytes", footprints(), quick=tuple(4 * KIB << i for i in range(18))),),
    metrics=(
        latency_metric(WHY, LEAST_CYCLES),
        Metric("latency_ns", "ns", Bound(f"{WHY}, at the highest clock", lower=least_ns)),
    ),
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
