"""How much of the L2 one SM sees as its own, and how much there is: one partition of two from the A100 on.

A single thread walks the ring. Up to the first knee its own partition holds everything; up to the second, lines that
the other partition holds are fetched from there; beyond, from DRAM.
"""

from microbench.machine.arch import CUDA, KIB, Machine
from microbench.measure.launch import Bench
from microbench.point import Point
from microbench.probe import Axis, Constant, Probe, Sample
from microbench.results.curves import knee
from microbench.shapes.chain import latency_metric
from microbench.shapes.chase import LINE_BYTES, TWIN, builds, chase

MIB = KIB * KIB


def footprints() -> tuple[int, ...]:
    """2 MiB to 160 MiB: six to the octave, and from 16 MiB on 24, so that a knee is known to 3 %."""
    coarse = [2 * 2 ** (i / 6) for i in range(18)]
    fine = [16 * 2 ** (i / 24) for i in range(81)]
    return tuple(round(size * MIB / LINE_BYTES) * LINE_BYTES for size in (*coarse, *fine))


def run(bench: Bench, point: Point) -> list[Sample]:
    """Latency of one load of the only thread on the chip."""
    return [chase(bench, point, chasers=1).sample("latency_cycles")]


def far_beyond(machine: Machine, point: Point) -> str | None:
    """Half as much again as the whole L2 shows both knees."""
    l2_bytes = machine.l2_bytes or 32 * MIB
    return "beyond one and a half times the L2" if point["footprint_bytes"] > 1.5 * l2_bytes else None


PROBE = Probe(
    asks="Up to which footprint does a single SM find everything in its own part of the L2, and in the L2 at all?",
    archs=CUDA,
    axes=(Axis("footprint_bytes", footprints(), quick=footprints()[::6]),),
    metrics=(latency_metric("a load's result comes at least one L1 pipeline later", 16),),
    builds=builds,
    run=run,
    twin=TWIN,
    skip=far_beyond,
    constants=(
        Constant("l2_visible_size_bytes", "latency_cycles", knee(0, "footprint_bytes"), unit="bytes"),
        Constant("l2_size_bytes", "latency_cycles", knee(1, "footprint_bytes"), unit="bytes"),
    ),
)
