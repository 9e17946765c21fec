"""What the tensor-core probes share: 16-bit operands, what physics allows, and one way to time the whole chip.

Accumulators never run off: every kernel adds each product and then subtracts it (mma_loop.cuh, wgmma_loop.cuh), so that
N(0, 1) operands keep them as large as a product over K = 32 makes them, however long the launch.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from microbench.device.protocol import Kernel
from microbench.machine.arch import Machine
from microbench.machine.tensor import tensor_flops_per_clk
from microbench.measure.launch import Bench, Expected, Launch
from microbench.point import Point
from microbench.probe import Axis, Bound, Metric, Overhead, Sample
from microbench.shapes.chain import Cycles

Floats = NDArray[np.float32]
Bits = NDArray[np.uint16]

INPUTS = Axis("inputs", ("normal", "zeros"))
K = 16
PER_TRIP = 8  # PER_TRIP of mma_loop.cuh and wgmma_loop.cuh
# An HMMA that waits longer than a stall count reaches has fillers behind it: one NOP by CUDA 12.9, and by CUDA 13 two
# UIADD3 that are predicated off (sm_80 to sm_89). The wait is 24 cycles by either.
HMMA_FILLER = Overhead(("NOP",), 0, 2 * PER_TRIP)
SUM_WITHIN = 1e-3  # of up to 128 accumulators of N(0, 1) products; an H200's wgmma leaves as much after 64 trips
A_ROWS = 64  # rows of A per warpgroup
ROW_ELEMENTS = 64  # a row of a swizzled tile: 128 bytes

# One launch lasts this long, so that its start and end are less than 0.3 % of it ...
LAUNCH_S = 2.5e-3
# ... and one repeat holds so many of them, back to back: 17 repeats are 0.13 s of unbroken load, so that the clock that
# is reported is the one the power limit leaves.
LAUNCHES_A_REPEAT = 3


def bits16(floats: Floats, kind: str) -> Bits:
    """float32 values as the bits of 'f16' or 'bf16', rounded to nearest even; no NaN."""
    if kind == "f16":
        return floats.astype(np.float16).view(np.uint16)
    word = floats.view(np.uint32).astype(np.uint64)
    return ((word + 0x7FFF + ((word >> 16) & 1)) >> 16).astype(np.uint16)


def values(inputs: str, *shape: int) -> Floats:
    """N(0, 1) or zeros, always the same ones."""
    if inputs == "zeros":
        return np.zeros(shape, np.float32)
    return np.random.default_rng(7).standard_normal(shape, np.float32)


def mma_operands(kind: str, inputs: str, threads: int, chains: int) -> NDArray[np.uint32]:
    """Words of shape (8 + 2 * chains, threads): A's fragment, its negative, and one B per chain (mma_loop.cuh)."""
    rows = values(inputs, 4 + 2 * chains, 2 * threads)
    a, b = rows[:4], rows[4:]
    return bits16(np.concatenate([a, 0 - a, b]), kind).view(np.uint32)


def wgmma_operands(inputs: str, warpgroups: int, n: int) -> tuple[Bits, Bits]:
    """bf16 bits: A of 64 rows a warpgroup, whose right half is the negative of its left one, and B of n rows."""
    rows = values(inputs, A_ROWS * warpgroups + n, ROW_ELEMENTS)
    half, b = rows[:-n, : ROW_ELEMENTS // 2], rows[-n:]
    return bits16(np.concatenate([half, 0 - half], axis=1), "bf16"), bits16(b, "bf16")


def wgmma_smem_bytes(warpgroups: int, n: int) -> int:
    """Both tiles, and what aligning them to 1024 bytes may take."""
    return 2 * ROW_ELEMENTS * (A_ROWS * warpgroups + n) + 1024


def mma_launches(bench: Bench, kernel: Kernel, inputs: str, warps: int, chains: int) -> Callable[[int], Launch]:
    """A launch of mma_loop on bf16 by its trips: one block of so many warps on every SM."""
    threads, blocks = 32 * warps, bench.machine.sm_count
    operands, out = bench.array(mma_operands("bf16", inputs, threads, chains)), bench.empty(4 * threads * blocks)
    expects = (nothing_left(out, threads * blocks),)
    return lambda trips: Launch(kernel, blocks, threads, (operands, np.int32(trips), out), expects=expects)


def wgmma_launches(bench: Bench, kernel: Kernel, inputs: str, warpgroups: int, n: int) -> Callable[[int], Launch]:
    """A launch of wgmma_loop by its trips: one block of so many warpgroups on every SM."""
    threads, blocks, smem = 128 * warpgroups, bench.machine.sm_count, wgmma_smem_bytes(warpgroups, n)
    a, b = map(bench.array, wgmma_operands(inputs, warpgroups, n))
    out = bench.empty(4 * threads * blocks)
    expects = (nothing_left(out, threads * blocks),)
    return lambda trips: Launch(kernel, blocks, threads, (a, b, np.int32(trips), out), smem, expects)


def rates(
    bench: Bench, launch: Callable[[int], Launch], trips: int, flops_a_trip: float, loaded: bool = True
) -> list[Sample]:
    """flops_per_clk_sm by the kernel's own clock; where `loaded` flops_per_s of the whole chip in bursts of some ms.

    `launch(trips)` is one block on every SM; `flops_a_trip` is what one block does in one trip of its loop.
    """
    trips = bench.trips(trips)
    cycles = bench.cycles(launch(trips), launch(2 * trips), operations=trips)
    if not loaded:
        return [cycles.inverse("flops_per_clk_sm", flops_a_trip)]
    sustained = bench.trips(max(trips, round(LAUNCH_S * cycles.clock_mhz * 1e6 / cycles.value)))
    whole = launch(sustained)
    seconds = bench.timed(replace(whole, args=(*whole.args, bench.clocks(whole))), inner=LAUNCHES_A_REPEAT)
    total = flops_a_trip * sustained * whole.grid
    return [cycles.inverse("flops_per_clk_sm", flops_a_trip), seconds.inverse("flops_per_s", total)]


def nothing_left(out: Any, threads: int) -> Expected:
    """Sums of accumulators to which each product was added and then its negative: 0 but for f32's roundings."""
    return Expected(out, lambda: np.zeros(threads, np.float32), within=SUM_WITHIN)


def tensor_cycles(flops: float) -> Cycles:
    """Cycles that one SM's tensor cores need for `flops` of 16-bit operands and f32 accumulators, dense."""

    def at(machine: Machine, _: Point) -> float | None:
        rate = tensor_flops_per_clk(machine)
        return flops / rate if rate else None

    return at


def rate_metrics(
    why: str,
    flops: Callable[[Point], float],
    cycles: Cycles,
    loaded: Callable[[Point], bool],
    documented: bool = False,
) -> tuple[Metric, ...]:
    """flops_per_clk_sm and flops_per_s, of `flops(point)` in `cycles` of one SM at least, and no more if documented.

    flops_per_s is that of the points that `loaded` holds for: 0.2 s each, which heat the chip for whoever comes next.
    """

    def per_clk(machine: Machine, point: Point) -> float | None:
        least = cycles(machine, point)
        return flops(point) / least if least else None

    def per_second(machine: Machine, point: Point) -> float | None:
        rate = per_clk(machine, point)
        return rate * machine.sm_count * machine.clock_hz if rate and machine.clock_hz else None

    highest = Bound(f"{why}, on every SM at the highest clock", upper=per_second)
    return (
        Metric("flops_per_clk_sm", "FLOP/clk/SM", Bound(why, upper=per_clk, documented=documented)),
        Metric("flops_per_s", "FLOP/s", highest, "power", loaded),
    )
