"""L2 read bandwidth over footprint and bytes in flight, past the L1 (ld.cg).

It falls as the footprint grows, so each constant names its own; the headline is 8 MiB, and where half of the L2 holds
less (Volta, Turing), the most that it holds. And it depends on who reads
what: SMs that read the same lines at the same time are served at nearly twice the rate of SMs that read different ones,
for the L2 Request Coalescer merges them before the slices (Nsight Compute's `lrc`). So `order=scattered` is of the L2,
and the headline; `order=shared` is what the coalescer makes of it.

Counters of an H200 (Nsight Compute 2025.3; its L2 ran at 1707 MHz beside SMs at 1980): of the reads of `scattered` the
slices saw 96 % at 128 KiB in flight, of those of `shared` 48 % at 64 KiB; either way they gave 8.7 to 9.3 TB/s, of
10.3 that 94 slices of 64 bytes a clock could. No read hit the L1. The port of an SM is no limit: it is 4 sectors a
clock wide, and took 3.2 of them where both blocks of an SM read the same lines. RRZE's gpu-l2-cache counts 7 % more at
8 MiB: 1 % of its reads hit the L1, 3 % are merged, and its slices gave 9.5 TB/s.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from microbench.machine.arch import CUDA, KIB, Machine
from microbench.measure.launch import Bench, Expected, Launch
from microbench.point import Point, Reducer
from microbench.probe import Axis, Bound, Build, Constant, Metric, Probe, Sample, Twin
from microbench.results.curves import first, peak
from microbench.shapes.accesses import load_past_l1
from microbench.shapes.stream import (
    BYTES_IN_FLIGHT,
    STREAMS,
    XORS_A_LOAD,
    defines,
    per_clk_metric,
    streaming,
    xor_by_thread,
)

MIB = KIB * KIB
HEADLINE = 8 * MIB
CHUNK_STEPS = {"scattered": 37, "shared": 1}
BYTES_PER_SM = 24 * MIB  # about 0.3 ms at 10 TB/s: far more than the launch's ramp


def builds(point: Point) -> tuple[Build, ...]:
    stream = STREAMS[point["bytes_in_flight"]]
    contract = streaming(load_past_l1(128, stream.flight), xors=XORS_A_LOAD * stream.flight, addresses=8, masks=1)
    return (Build(defines(stream), contract),)


def run(bench: Bench, point: Point) -> list[Sample]:
    """Bytes per second of the whole chip, and per clock and SM at the clock it ran at."""
    (kernel,) = bench.kernels(point)
    stream, footprint = STREAMS[point["bytes_in_flight"]], bench.footprint(point["footprint_bytes"])
    grid = bench.machine.sm_count * stream.blocks
    memory, out = bench.inputs("bits", footprint, np.uint8), bench.empty(4 * grid * stream.threads)
    trips = bench.trips(BYTES_PER_SM // (stream.blocks * stream.chunk_bytes))
    mask, step = footprint // stream.chunk_bytes - 1, CHUNK_STEPS[point["order"]]

    def read() -> NDArray[np.uint32]:
        sums = xor_by_thread(bench.host(memory).view(np.uint32), stream)
        met = (np.arange(grid)[:, None] + step * np.arange(trips)) & mask
        whole: NDArray[np.uint32] = np.bitwise_xor.reduce(sums[met], axis=1)
        return whole

    args = (np.uint64(memory.data.ptr), np.int32(mask), np.int32(step), np.int32(trips), out)
    seconds = bench.timed(Launch(kernel, grid, stream.threads, args, expects=(Expected(out, read),)))
    total = grid * trips * stream.chunk_bytes
    per_clock = total / (bench.machine.sm_count * seconds.clock_mhz * 1e6)
    return [seconds.inverse("bandwidth_bytes_per_s", total), seconds.inverse("bandwidth_bytes_per_clk_sm", per_clock)]


def port_bytes_per_s(machine: Machine, _: Point) -> float | None:
    if machine.clock_hz is None or machine.arch.limits is None:
        return None
    return machine.sm_count * machine.arch.limits.l2_bytes_per_clk * machine.clock_hz


def refused(machine: Machine, point: Point) -> str | None:
    """Half of the L2 is what one partition holds without copies from the other; two blocks would share an SM's port."""
    if point["order"] == "shared" and STREAMS[point["bytes_in_flight"]].blocks > 1:
        return "two blocks of one SM would read the same lines, and the SM itself merges them"
    if machine.l2_bytes and point["footprint_bytes"] > machine.l2_bytes / 2:
        return "larger than half of this GPU's L2"
    return None


def twin(flight: int, threads: int) -> Callable[..., None]:
    from numba import cuda, int32

    from microbench.compile.numba_ptx import countdown, store_global, stream_global_cg

    stride = 16 * threads

    def kernel(base, chunk_mask, chunk_step, trips, out):  # type: ignore[no-untyped-def]
        mine = base + cuda.threadIdx.x * 16
        total = int32(0)
        chunk = cuda.blockIdx.x
        while trips > 0:
            total = stream_global_cg(mine + (chunk & chunk_mask) * (stride * flight), stride, flight, total)
            chunk = int32(chunk + chunk_step)
            trips = countdown(trips)
        store_global(out + 4 * (cuda.blockIdx.x * threads + cuda.threadIdx.x), total)

    return kernel


PORT = "the width of an SM's port"
SMALLER = (4 * MIB, 2 * MIB)


def headline(order: str) -> Reducer:
    """The plateau at 8 MiB; of an L2 of which half is smaller, at the largest footprint that was measured."""
    return first(*(peak("bytes_in_flight", footprint_bytes=each, order=order) for each in (HEADLINE, *SMALLER)))


PROBE = Probe(
    asks="How fast do all SMs together read from the L2, by footprint and by bytes in flight?",
    archs=CUDA,
    axes=(
        Axis("order", tuple(CHUNK_STEPS), quick=("scattered",)),
        Axis("footprint_bytes", (*SMALLER[::-1], HEADLINE, 2 * HEADLINE), quick=(HEADLINE,)),
        BYTES_IN_FLIGHT,
    ),
    metrics=(
        Metric("bandwidth_bytes_per_s", "B/s", Bound(f"{PORT}, at the highest clock", upper=port_bytes_per_s)),
        per_clk_metric(PORT, lambda sm: sm.l2_bytes_per_clk, documented=False),
    ),
    builds=builds,
    run=run,
    twin=Twin(twin, "void(int64, int32, int32, int32, int64)"),
    skip=refused,
    constants=(
        Constant("l2_bandwidth_bytes_per_s", "bandwidth_bytes_per_s", headline("scattered")),
        Constant("l2_bandwidth_bytes_per_clk_sm", "bandwidth_bytes_per_clk_sm", headline("scattered")),
        Constant(
            "l2_coalesced_bandwidth_bytes_per_clk_sm",
            "bandwidth_bytes_per_clk_sm",
            headline("shared"),
            quick=False,
        ),
    ),
)
