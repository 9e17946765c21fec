"""How much of the L2 one SM sees as its own: the whole on Volta, one of two partitions from the A100 on."""

from microbench.arch import CUDA, KIB
from microbench.curves import knee
from microbench.measure import CudaBench
from microbench.patterns import latency_metrics
from microbench.probe import Axis, Constant, Point, Probe, Sample
from microbench.probes.memory._chase import TWIN, builds, chase, too_large

MIB = KIB * KIB


def run(bench: CudaBench, point: Point) -> list[Sample]:
    """Latency of one load of the only thread on the chip."""
    return chase(bench, point, chasers=1).latency()


PROBE = Probe(
    asks="Up to which footprint does a single SM find everything in its own part of the L2?",
    archs=CUDA,
    axes=(
        Axis(
            "footprint_bytes", tuple(2 * MIB * i for i in range(1, 33)), quick=tuple(8 * MIB * i for i in range(1, 9))
        ),
    ),
    metrics=latency_metrics("a load's result comes at least one L1 pipeline later", 16),
    builds=builds,
    run=run,
    twin=TWIN,
    skip=too_large,
    constants=(Constant("l2_visible_size_bytes", "latency_cycles", knee(0, "footprint_bytes"), unit="bytes"),),
)
