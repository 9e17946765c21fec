"""tcgen05.mma back to back, by type, shape, N and where A comes from: the ceiling of every product on Blackwell.

Nothing is loaded: operands stay in shared memory and tensor memory. The rate per clock does not depend on the data; the
rate per second does, through the power limit, and is that of N(0, 1).
"""

from microbench.machine.arch import with_feature
from microbench.measure.launch import Bench
from microbench.point import Point
from microbench.probe import Build, Constant, Probe, Sample
from microbench.results.curves import at
from microbench.shapes import tcgen05
from microbench.shapes.chain import loop
from microbench.shapes.matrix import PER_TRIP, rate_metrics, rates

CYCLES_A_LAUNCH = 200_000  # of the in-kernel reading
KEPT = tuple(point for _, point in tcgen05.named())


def builds(point: Point) -> tuple[Build, ...]:
    """Nothing but products, and the counter."""
    return (tcgen05.build(point, loop(tcgen05.product(point, PER_TRIP))),)


def run(bench: Bench, point: Point) -> list[Sample]:
    """Every SM, or every pair of SMs, multiplies; a trip leaves the sums as they were."""
    launch, cycles_each = tcgen05.launches(bench, point, lambda _: 1), tcgen05.least_cycles(bench.machine, point)
    assert cycles_each is not None
    trips = round(CYCLES_A_LAUNCH / (cycles_each * PER_TRIP))
    return rates(bench, launch, trips, PER_TRIP * tcgen05.flops(point), loaded(point))


def loaded(point: Point) -> bool:
    """The points that a profile keeps."""
    return any(point.matches(**kept) for kept in KEPT)


PROBE = Probe(
    asks="How many FLOP does tcgen05.mma do per clock and per second, by type, shape, N and where A comes from?",
    archs=with_feature("tcgen05"),
    axes=tcgen05.AXES,
    metrics=rate_metrics(tcgen05.WHY, tcgen05.flops, tcgen05.least_cycles, loaded, documented=True),
    builds=builds,
    run=run,
    skip=tcgen05.refused,
    constants=tuple(
        Constant(f"{name}_{label}", metric, at(**point))
        for name, point in tcgen05.named()
        for label, metric in (("flops_per_clk_sm", "flops_per_clk_sm"), ("burst_flops_per_s", "flops_per_s"))
    ),
)
