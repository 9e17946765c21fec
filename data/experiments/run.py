"""Experiments that decide what a probe's number means: `python data/experiments/run.py` prints all, a name prints one.

It needs CuPy and a Hopper GPU. What an H200 printed lies beside, in `h200-sxm-141gb/`; README.md says what it decided.
"""

import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import cupy
import numpy as np

HERE = Path(__file__).parent
SMS = cupy.cuda.Device().attributes["MultiProcessorCount"]
KIB, MIB = 1 << 10, 1 << 20


def kernels(name: str) -> Callable[[str], cupy.RawKernel]:
    """The kernels of one source by their names."""
    source = (HERE / f"{name}.cu").read_text().replace('#include "clocks.cuh"', (HERE / "clocks.cuh").read_text())
    module = cupy.RawModule(code=source.replace("#pragma once", ""), options=("--std=c++17",))
    return module.get_function


def clocks_a_trip(kernel: cupy.RawKernel, warps: int, trips: int, dtype: type) -> float:
    """SM clocks from the first warp's start to the last one's end, of twice the trips less once: the median of five."""
    operands, out, clocks = cupy.ones(4096, dtype), cupy.zeros(1024, dtype), cupy.zeros(64, np.int64)

    def span(count: int) -> int:
        kernel((1,), (32 * warps,), (operands, np.int32(count), out, clocks))
        stamps = clocks.get()[: 2 * warps]
        return int(stamps[1::2].max() - stamps[0::2].min())

    span(trips)
    return float(np.median([span(2 * trips) - span(trips) for _ in range(5)])) / trips


def seconds(launch: Callable[[], None], repeats: int = 5) -> float:
    """Of one launch by events, the median."""
    launch()
    found = []
    for _ in range(repeats):
        begin, end = cupy.cuda.Event(), cupy.cuda.Event()
        begin.record()
        launch()
        end.record()
        end.synchronize()
        found.append(cupy.cuda.get_elapsed_time(begin, end) * 1e-3)
    return float(np.median(found))


def register_banks() -> None:
    kernel = kernels("register_banks")
    print("FFMA results a clock and SM, at 4, 8, 16 and 32 warps")
    for form, operands in enumerate(("x = x * a + b", "x = x * 1.0000001 + b", "x = x * x + x", "x = x * a + x")):
        for chains in (1, 2, 3, 4, 8):
            rates = [
                512 * 32 * warps / clocks_a_trip(kernel(f"ffma_{form}_{chains}"), warps, 20, np.float32)
                for warps in (4, 8, 16, 32)
            ]
            print(f"{operands:22} chains {chains}  " + "".join(f"{rate:8.1f}" for rate in rates))


def mma_sync_cycles() -> None:
    kernel = kernels("mma_sync_cycles")
    kinds = (
        "bf16 k16",
        "f16 k16",
        "f16 k16, f16 sums",
        "bf16 k16, B of A",
        "f16 k8",
        "f16 k8, f16 sums",
        "s8 k32",
        "tf32 k8",
    )
    print("cycles that one m16n8 product holds a tensor core, at 4, 8, 16 and 32 warps")
    for kind, name in enumerate(kinds):
        for chains in (1, 2, 4, 8):
            held = [
                clocks_a_trip(kernel(f"mma_{kind}_{chains}"), warps, 50, np.uint32) / 32 * 4 / warps
                for warps in (4, 8, 16, 32)
            ]
            print(f"{name:20} chains {chains}  " + "".join(f"{cycles:8.2f}" for cycles in held))


def l1_placement(places: Sequence[int] = (*range(9), 12, 16, 24, 32, 48, 64, 96, 128)) -> None:
    chase, sizes = kernels("l1_placement")("chase"), range(204, 264, 4)
    pool = cupy.zeros(8 * MIB, np.uint8)
    aligned = -pool.data.ptr % (2 * MIB)
    place, clocks = cupy.zeros(1, np.uint64), cupy.zeros(2, np.int64)
    print("cycles a load, by where the ring begins (KiB, down) and its size: " + " ".join(f"{size}" for size in sizes))
    for repeat in range(2):
        for begin in places:
            first, row = aligned + 8 * begin * KIB, []
            for size in sizes:
                lines = size * KIB // 128
                order = np.random.default_rng(repeat).permutation(lines)
                addresses = order.astype(np.uint64) * 128 + np.uint64(pool.data.ptr + first)
                ring = np.zeros((lines, 16), np.uint64)
                ring[order, 0] = np.roll(addresses, -1)
                pool[first : first + lines * 128] = cupy.asarray(ring.view(np.uint8).ravel())
                place[0] = addresses[0]
                spans = []
                for trips in (64, 64, 128):
                    chase((1,), (1024,), (place, np.int32(lines), np.int32(trips), clocks))
                    start, end = clocks.get()
                    spans.append(int(end - start))
                row.append((spans[2] - spans[1]) / (64 * 32))
            print(f"{8 * begin:5} KiB" + "".join(f"{cycles:7.1f}" for cycles in row))


def l2_coalescing() -> None:
    kernel = kernels("l2_coalescing")
    memory = cupy.random.randint(0, 2**31, 64 * MIB // 4, dtype=np.int32)
    out = cupy.zeros(2 * SMS * 1024, np.uint32)
    print("TB/s by footprint, bytes in flight an SM, and who reads what")
    for footprint in (2, 8, 16, 32):
        for flight, blocks in ((2, 1), (4, 1), (4, 2)):
            chunk, grid = 16 * KIB * flight, SMS * blocks
            chunks, trips = footprint * MIB // chunk, 96 * MIB // chunk // blocks
            orders = {  # step of a block, groups that begin together, distance between groups
                "scattered": (37, grid, 1),
                "shared": (1, grid, 1),
                "all the same": (1, 1, 0),
                "16 groups": (1, 16, max(1, chunks // 16)),
            }
            for order, (step, groups, spread) in orders.items():
                numbers = map(np.int32, (chunks - 1, step, groups, spread, trips))
                arguments = (np.uint64(memory.data.ptr), *numbers, out)
                launched = kernel(f"l2_{flight}")
                took = seconds(lambda: launched((grid,), (1024,), arguments))  # noqa: B023  # called at once
                rate = grid * trips * chunk / took
                print(f"{footprint:3} MiB {16 * flight * blocks:4} KiB in flight  {order:14} {rate * 1e-12:7.2f}")


def dram_writes() -> None:
    kernel, memory = kernels("dram_writes"), cupy.zeros(1 << 29, np.float64)
    print("TB/s by GiB written, kernel and blocks")
    for gib in (1, 2, 4):
        for name, width, blocks in (
            ("grid_of_8", 8, 0),
            ("grid_of_16", 16, 0),
            ("grid_of_16_mixed", 16, 0),
            ("staying_in_turn", 16, SMS),
            ("staying_in_turn", 16, 2 * SMS),
            ("staying_on_its_own", 16, SMS),
            ("staying_on_its_own", 16, 2 * SMS),
        ):
            count, launched = (gib << 30) // width, kernel(name)
            value = np.float64(0.23) if width == 8 else np.float32(0.23)
            grid = blocks or count // 1024
            took = seconds(lambda: launched((grid,), (1024,), (memory, np.uint64(count), value)))  # noqa: B023
            print(f"{gib} GiB  {name:20} {grid:8} {(gib << 30) / took * 1e-12:7.2f}")


EXPERIMENTS = (register_banks, mma_sync_cycles, l1_placement, l2_coalescing, dram_writes)

if __name__ == "__main__":
    for experiment in EXPERIMENTS:
        if len(sys.argv) < 2 or experiment.__name__ in sys.argv[1:]:
            print(f"== {experiment.__name__}")
            experiment()
