"""tcgen05.mma alone: from its issue over the commit to the return of the wait on an mbarrier.

The loop's own instructions are in it, on the way from one wait to the next issue: R2UR of what the instruction takes
from uniform registers, and the branch. Nothing else waits.
"""

from dataclasses import replace

from microbench.machine.arch import with_feature
from microbench.measure.launch import Bench
from microbench.point import Point
from microbench.probe import Build, Constant, Overhead, Probe, Sample
from microbench.results.curves import at
from microbench.shapes import tcgen05
from microbench.shapes.chain import COUNT, cycles_metric, loop

TRY = "SYNCS.PHASECHK.TRANS64.TRYWAIT"
TRIPS = 256  # even, as every other count: each product takes back what the one before added
# Operands and the mbarrier's parity move between registers and uniform registers, and A's slice takes turns.
MOVES = Overhead((*COUNT, "R2UR", "IMAD", "LOP3", "YIELD", "UMOV", "NOP", "PLOP3"), 4, 16)


def builds(point: Point) -> tuple[Build, ...]:
    """One product a trip, its commit, and one try of the wait: what it answers decides whether the loop goes on."""
    commit = "UTCBAR.2CTA" if tcgen05.shape_of(point).blocks == 2 else "UTCBAR"
    one_each = (Overhead((opcode,), 1, 1) for opcode in (commit, TRY))
    timed = loop(tcgen05.product(point, 1), overhead=(*one_each, MOVES))
    return (tcgen05.build(point, replace(timed, closed_by=TRY)),)


def run(bench: Bench, point: Point) -> list[Sample]:
    """Every SM, or every pair of SMs, multiplies and waits."""
    launch, trips = tcgen05.launches(bench, point, lambda trips: 1 - trips % 2), bench.trips(TRIPS)
    return [bench.cycles(launch(trips), launch(2 * trips), operations=trips).sample("latency_cycles")]


PROBE = Probe(
    asks="How long does a tcgen05.mma take from its issue until a wait for it returns, by type, shape and operands?",
    archs=with_feature("tcgen05"),
    axes=tcgen05.AXES,
    metrics=(cycles_metric("latency", tcgen05.WHY, tcgen05.least_cycles),),
    builds=builds,
    run=run,
    skip=tcgen05.refused,
    constants=tuple(
        Constant(f"{name}_latency_cycles", "latency_cycles", at(**point)) for name, point in tcgen05.named()
    ),
)
