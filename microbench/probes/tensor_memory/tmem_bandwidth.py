"""Tensor memory to registers and back, by shape and registers of one instruction: what a softmax pays for its scores.

Thirty-two lanes of a quarter of the SM belong to a warp, so that four warps reach all of tensor memory. What is waited
for is in it: a load by the next one into the same registers, stores by tcgen05.wait::st once a trip.
"""

import numpy as np
from numpy.typing import NDArray

from microbench.machine.arch import Machine, with_feature
from microbench.measure.launch import WARP, Bench, Expected, Launch
from microbench.point import Point
from microbench.probe import Axis, Bound, Build, Constant, Metric, OpCount, Overhead, Probe, Sample
from microbench.results.curves import at
from microbench.shapes.chain import COUNTER, loop

TRIPS = 128
PER_TRIP = 16  # ptxas unrolls a loop of fewer
MOST_ARRAYS, MOST_REGISTERS = 8, 64  # of 128 ptxas makes spills: it keeps more loads apart than were asked for
LEAST = {"32x32b": 1, "16x64b": 1, "16x128b": 2, "16x256b": 4, "16x32bx2": 1}  # registers of .x1
# As SASS names them: 16x32bx2 is an instruction for the lower sixteen threads and one for the upper.
MODIFIERS = {
    "32x32b": ("",),
    "16x64b": (".16dp64bit",),
    "16x128b": (".16dp128bit",),
    "16x256b": (".16dp256bit",),
    "16x32bx2": (".16dp32bit_t0_t15", ".16dp32bit_t16_t31"),
}
# A register of each of a warp's threads a clock, in each of the SM's four quarters.
REGISTER_BYTES_PER_CLK = 4 * WARP * 4
SMEM_BYTES = 16


def arrays(point: Point) -> int:
    """Moves to or from registers of their own, which are waited for together."""
    return max(1, min(MOST_ARRAYS, MOST_REGISTERS // int(point["registers"])))


def too_few(_: Machine, point: Point) -> str | None:
    """Why a shape has no instruction of so few registers."""
    least = LEAST[point["shape"]]
    return f"{point['shape']} moves {least} registers or more" if point["registers"] < least else None


def rounds(point: Point) -> int:
    """How often a trip moves all of its registers."""
    return PER_TRIP // arrays(point)


def opcodes(direction: str, shape: str, registers: int) -> tuple[str, ...]:
    """One move's instructions as SASS names them, where .x1 is not said."""
    times = registers // LEAST[shape]
    name = "STTM" if direction == "store" else "LDTM"
    return tuple(f"{name}{modifier}{f'.x{times}' if times > 1 else ''}" for modifier in MODIFIERS[shape])


def builds(point: Point) -> tuple[Build, ...]:
    """A trip's moves and their waits, which are fences of stores, and of loads a NOP and what looks at a word."""
    stores, registers, shape = point["direction"] == "store", int(point["registers"]), point["shape"]
    defines: tuple[tuple[str, int | str], ...] = (
        ("SHAPE", f"{shape}<{registers}>" if shape == "16x32bx2" else shape),  # its halves side by side
        ("COUNT", registers),
        ("COLUMNS", registers if shape == "32x32b" else 2 * registers),
        ("ARRAYS", arrays(point)),
        ("ROUNDS", rounds(point)),
        ("STORES", int(stores)),
    )
    moves = tuple(OpCount(opcode, PER_TRIP) for opcode in opcodes(point["direction"], shape, registers))
    wait = Overhead(("FENCE.VIEW.ASYNC.T" if stores else "NOP",), rounds(point), rounds(point))
    looks = () if stores else (Overhead(("LOP3", "MOV", "IMAD.MOV"), PER_TRIP // 2, 2 * PER_TRIP),)
    return (Build(defines, loop(*moves, distance=0, overhead=(COUNTER, wait, *looks))),)


def checksums(point: Point, seeds: NDArray[np.uint32]) -> NDArray[np.uint32]:
    """What each thread makes of the words that it wrote and read again."""
    sums = np.zeros_like(seeds)
    for i in range(arrays(point) * int(point["registers"])):
        sums = sums * np.uint32(3) + seeds * np.uint32(2 * i + 1)
    return sums


def run(bench: Bench, point: Point) -> list[Sample]:
    """One block of so many warps on every SM."""
    (kernel,) = bench.kernels(point)
    threads, sms, trips = WARP * int(point["warps"]), bench.machine.sm_count, bench.trips(TRIPS)
    seeds = np.random.default_rng(7).integers(0, 2**32, threads, np.uint32)
    given, out = bench.array(seeds), bench.empty(4 * threads * sms)
    expects = (Expected(out, lambda: np.tile(checksums(point, seeds), sms)),)
    short, long = (
        Launch(kernel, sms, threads, (given, np.int32(n), out), SMEM_BYTES, expects) for n in (trips, 2 * trips)
    )
    nbytes = 4 * int(point["registers"]) * PER_TRIP * threads
    return [bench.cycles(short, long, operations=trips).inverse("bytes_per_clk_sm", nbytes)]


PROBE = Probe(
    asks="How many bytes a clock move between tensor memory and the registers of one SM, by shape and by registers?",
    archs=with_feature("tcgen05"),
    axes=(
        Axis("direction", ("load", "store")),
        Axis("shape", tuple(LEAST), quick=("32x32b",)),
        Axis("registers", (1, 32, 128), quick=(32,)),
        Axis("warps", (4, 8), quick=(8,)),
    ),
    metrics=(
        Metric(
            "bytes_per_clk_sm",
            "B/clk/SM",
            Bound("a register of each thread a clock, in four quarters of the SM", upper=REGISTER_BYTES_PER_CLK),
        ),
    ),
    builds=builds,
    run=run,
    skip=too_few,
    constants=tuple(
        Constant(
            f"tmem_{direction}{label}_bytes_per_clk_sm",
            "bytes_per_clk_sm",
            at(direction=direction, shape=shape, registers=32, warps=8),
            quick=not label,
        )
        for direction in ("load", "store")
        for label, shape in (("", "32x32b"), ("_16x256b", "16x256b"))
    ),
)
