"""Exponentials of which a share is computed on the FMA pipes, as a polynomial, beside MUFU.EX2.

A polynomial of degree 3 takes eight instructions: FMNMX, three FADD, three FFMA and LEA. Of an SM with 16 lanes of MUFU
and 128 of FFMA they cost an issue slot each, so that the best share lies where both are full, at 0.56 by the documented
rates; what a kernel does beside it moves that down.
"""

import numpy as np
from numpy.typing import NDArray

from microbench.machine.arch import CUDA, Machine
from microbench.measure.launch import WARP, Bench, Expected, Launch
from microbench.point import Point
from microbench.probe import Axis, Bound, Build, Constant, Metric, OpCount, Overhead, Probe, Sample, SassContract
from microbench.results.curves import peak
from microbench.shapes.chain import COUNTER, FILLER, chained, loop, operands

CHAINS, PER_TRIP, TRIPS = 8, 64, 64
SHARES = (0.0, 0.125, 0.25, 0.5)
FP32, ALU = 6, 2  # of the eight instructions: FADD and FFMA; FMNMX and LEA
ISSUE_LANES = 4 * WARP  # four schedulers, a warp's instruction each a clock
# The polynomial's relative error is 1.0e-4, and each step leaves 0.44 of the one before.
WITHIN = 3e-4


def polynomials(point: Point) -> int:
    """Of the eight chains of a warp."""
    return round(CHAINS * float(point["share"]))


def contract(point: Point) -> SassContract:
    """Each chain eight results before its next one; a polynomial's instructions in full."""
    results = PER_TRIP // CHAINS * polynomials(point)
    if not results:
        return loop(OpCount("MUFU.EX2", PER_TRIP), distance=CHAINS)
    each = {"FMNMX": 1, "FADD": 3, "FFMA": 3, "LEA": 1}
    ops = tuple(OpCount(opcode, count * results) for opcode, count in each.items())
    # A coefficient that ptxas holds in no register between trips, or writes anew for some of half the results.
    coefficient = Overhead(("MOV", "IMAD.MOV", "HFMA2"), 0, 5)
    return loop(OpCount("MUFU.EX2", PER_TRIP - results), *ops, overhead=(COUNTER, FILLER, coefficient))


def builds(point: Point) -> tuple[Build, ...]:
    defines = (("POLYNOMIAL", polynomials(point)), ("PER_TRIP", PER_TRIP), ("THREADS", WARP * point["warps"]))
    return (Build(defines, contract(point)),)


def run(bench: Bench, point: Point) -> list[Sample]:
    """One block of so many warps on every SM."""
    (kernel,) = bench.kernels(point)
    sms, warps, trips = bench.machine.sm_count, int(point["warps"]), bench.trips(TRIPS)
    given, out = bench.array(operands()), bench.empty(4 * CHAINS * WARP * warps * sms)

    def launch(count: int) -> Launch:
        def values() -> NDArray[np.float32]:
            x, a, b = operands()
            begin = x + a * np.arange(CHAINS, dtype=np.float32)[:, None]
            ends = chained(lambda x, a, b: np.exp2(-x), begin, a, b, count * PER_TRIP // CHAINS)
            return np.tile(np.tile(ends, (1, warps)).reshape(-1), sms)

        expects = (Expected(out, values, WITHIN),)
        return Launch(kernel, sms, WARP * warps, (given, np.int32(count), out), expects=expects)

    cycles = bench.cycles(launch(trips), launch(2 * trips), operations=1)
    return [cycles.inverse("results_per_clk_sm", trips * PER_TRIP * WARP * warps)]


def highest(machine: Machine, point: Point) -> float | None:
    """The pipe that is full first, or the issue slots."""
    limits, share = machine.arch.limits, polynomials(point) / CHAINS
    if limits is None:
        return None
    busy = (
        (1 - share) / limits.mufu_lanes,
        share * FP32 / limits.fp32_lanes,
        share * ALU / limits.int32_lanes,
        (1 - share + share * (FP32 + ALU)) / ISSUE_LANES,
    )
    return 1 / max(busy)


PROBE = Probe(
    asks="How many exponentials does one SM give per clock where a share of them is a polynomial on the FMA pipes?",
    archs=CUDA,
    axes=(Axis("share", SHARES), Axis("warps", (8, 16, 32), quick=(16, 32))),
    metrics=(
        Metric(
            "results_per_clk_sm",
            "results/clk/SM",
            Bound(
                "lanes of MUFU, of FP32 and of the ALU, and one instruction a clock of each scheduler", upper=highest
            ),
        ),
    ),
    builds=builds,
    run=run,
    constants=tuple(
        Constant(f"ex2_{label}_polynomial_per_clk_sm", "results_per_clk_sm", peak("warps", share=share))
        for label, share in (("eighth", 0.125), ("quarter", 0.25), ("half", 0.5))
    ),
)
