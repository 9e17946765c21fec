"""What handing on a phase of an mbarrier takes: from one warp's arrive to another warp's wait that passes.

Two warps play ping-pong: a trip of their loop is two hand-overs, there and back. The loop's own instructions stand
between a wait and the arrive behind it, as a predicate does in any kernel; nobody else uses the SM.
"""

from dataclasses import replace

import numpy as np

from microbench.bounds import limit
from microbench.machine.arch import with_feature
from microbench.measure.launch import WARP, Bench, Expected, Launch
from microbench.point import Point
from microbench.probe import Axis, Build, Constant, OpCount, Overhead, Probe, Sample
from microbench.results.curves import at
from microbench.shapes.chain import COUNT, latency_metric, loop

TRY, ARRIVE = "SYNCS.PHASECHK.TRANS64.TRYWAIT", "SYNCS.ARRIVE.TRANS64.A1T0"
HANDOVERS = 2  # of a trip
TRIPS = 256
SMEM_BYTES = 16
# Warps go to schedulers in turn: the fourth after the first is on the same one.
PARTNERS = {"other": 1, "same": 4}
THREADS = WARP * (1 + max(PARTNERS.values()))
# Counter and parity (which NVRTC 13.0 shifts and 12.9 multiplies), and the predicate under which one lane arrives.
AROUND = Overhead((*COUNT, "IMAD", "SHF", "PLOP3", "LOP3", "NOP", "MOV"), 4, 8)


def builds(_: Point) -> tuple[Build, ...]:
    """One try to wait and one arrive a trip; what the try answers decides whether the loop goes on."""
    contract = replace(loop(OpCount(TRY, 1), OpCount(ARRIVE, 1), overhead=(AROUND,)), closed_by=TRY)
    return (Build((("THREADS", THREADS),), contract),)


def run(bench: Bench, point: Point) -> list[Sample]:
    """Two warps on every SM; those between them leave at once."""
    (kernel,) = bench.kernels(point)
    sms, trips, partner = bench.machine.sm_count, bench.trips(TRIPS), PARTNERS[point["scheduler"]]
    out = bench.empty(4 * 2 * sms)

    def launch(count: int) -> Launch:
        expects = (Expected(out, lambda: np.full(2 * sms, count, np.int32)),)
        return Launch(kernel, sms, THREADS, (np.int32(partner), np.int32(count), out), SMEM_BYTES, expects)

    return [bench.cycles(launch(trips), launch(2 * trips), operations=HANDOVERS * trips).sample("latency_cycles")]


PROBE = Probe(
    asks="How many cycles after a warp arrives at an mbarrier does another warp's wait for it pass?",
    archs=with_feature("mbarrier"),
    axes=(Axis("scheduler", tuple(PARTNERS)),),
    metrics=(
        latency_metric(
            "a wait that passes sets a predicate, which nothing reads earlier than the result of an addition",
            limit(lambda sm: sm.alu_latency_cycles),
        ),
    ),
    builds=builds,
    run=run,
    constants=(Constant("mbarrier_handover_latency_cycles", "latency_cycles", at(scheduler="other")),),
)
