"""Tensor memory's latency to one warp: a load alone, and the way there and back.

load       from one tcgen05.ld to the next whose address it brings; R2UR, which an address takes, is in it
exchange   tcgen05.st, its wait, tcgen05.ld, its wait: what P pays on its way to the tensor cores; an addition is in it
"""

from functools import partial

import numpy as np
from numpy.typing import NDArray

from microbench.machine.arch import Machine, with_feature
from microbench.measure.launch import WARP, Bench, Expected, Launch
from microbench.point import Point
from microbench.probe import Axis, Build, Constant, OpCount, Overhead, Probe, Sample, SassContract
from microbench.results.curves import at
from microbench.shapes.chain import SETTLE, latency_metric

CHAIN = 16
RING = 256
SMEM_BYTES = 16


def builds(point: Point) -> tuple[Build, ...]:
    """A chain, and one of twice the length."""
    exchanges, registers = point["way"] == "exchange", int(point["registers"])
    times = f".x{registers}" if registers > 1 else ""
    made = []
    for length in (CHAIN, 2 * CHAIN):
        load, waits = OpCount(f"LDTM{times}", length), Overhead(("NOP",), length, 2 * length)
        there = (("VIADD", "IADD3", "IMAD"), ("FENCE.VIEW.ASYNC.T",), (f"STTM{times}",))
        exchange = tuple(Overhead(opcodes, length, length) for opcodes in there)
        beside = exchange if exchanges else (Overhead(("R2UR",), length - 1, length),)
        contract = SassContract((load,), "straight", None if exchanges else 1, (*beside, waits, SETTLE))
        made.append(Build((("COUNT", registers), ("CHAIN", length), ("EXCHANGE", int(exchanges))), contract))
    return tuple(made)


def run(bench: Bench, point: Point) -> list[Sample]:
    """One warp on every SM."""
    registers, sms = int(point["registers"]), bench.machine.sm_count
    seeds = np.random.default_rng(7).integers(0, 2**32, WARP, np.uint32)
    given, out = bench.array(seeds), bench.empty(4 * WARP * sms)

    def expected(length: int) -> NDArray[np.uint32]:
        if point["way"] == "load":
            return np.full(WARP * sms, length * registers % RING, np.uint32)
        sums = seeds + np.uint32(length)
        for i in range(1, registers):
            sums = sums * np.uint32(3) + seeds + np.uint32(i)
        return np.tile(sums, sms)

    short, long = (
        Launch(kernel, sms, WARP, (given, out), SMEM_BYTES, (Expected(out, partial(expected, length)),))
        for kernel, length in zip(bench.kernels(point), (CHAIN, 2 * CHAIN), strict=True)
    )
    return [bench.cycles(short, long, operations=CHAIN).sample("latency_cycles")]


def least_cycles(machine: Machine, point: Point) -> float | None:
    """A register of each thread a clock, both ways of an exchange; and no result is ready sooner than an addition's."""
    if machine.arch.limits is None:
        return None
    ways = 2 if point["way"] == "exchange" else 1
    return float(max(machine.arch.limits.alu_latency_cycles, ways * int(point["registers"])))


PROBE = Probe(
    asks="How long does a word take from tensor memory to a register, and there and back?",
    archs=with_feature("tcgen05"),
    axes=(Axis("way", ("load", "exchange")), Axis("registers", (1, 8, 32), quick=(1, 32))),
    metrics=(latency_metric("a register of each thread a clock", least_cycles),),
    builds=builds,
    run=run,
    constants=tuple(
        Constant(f"tmem_{way}{label}_latency_cycles", "latency_cycles", at(way=way, registers=registers))
        for way in ("load", "exchange")
        for label, registers in (("", 1), ("_x32", 32))
    ),
)
