"""The two ways to time a kernel on a GPU, and nothing else.

`CudaBench.cycles`: inside the kernel, clock64 at both ends, the slope of a short and a long run, so that launch,
prologue and the bracket itself cancel. `CudaBench.timed`: the whole kernel, CUDA events around a graph of launches,
warm or cold. Both report the SM clock they ran at: clock64 over globaltimer across a window that brackets all repeats.
"""

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from microbench import sass
from microbench.compile import Cubin, cache, compile_probe
from microbench.compile.numba import compile_twin
from microbench.device import tensor_map
from microbench.device.protocol import Kernel
from microbench.emulator.tensor_map import Swizzle
from microbench.errors import MeasureError
from microbench.machine import nvml
from microbench.measure.launch import WARP, Launch, Measured
from microbench.measure.soak import Second, watched
from microbench.point import Point
from microbench.probe import Build, Probe, SassContract

if TYPE_CHECKING:
    from microbench.device.cuda import CudaDevice

# probes.md 1.3: a clock read needs a window of at least this many ticks of the timer to be better than 0.01 %.
WINDOW_TICKS = 10_000
MAX_REPEATS = 4000
ATTEMPTS = 6
FIRST_LAUNCH_S = 2.5e-3  # what a launch of a soak is made to last; how long it really does is measured first
PROMOTION_BYTES = 256
LATE = np.iinfo(np.int64).max


def _spread(values: NDArray[np.float64], clock_mhz: float) -> Measured:
    low, middle, high = np.quantile(values, [0.05, 0.5, 0.95])
    return Measured(float(middle), float(low), float(high), len(values), clock_mhz)


class CudaBench:
    """What a CUDA probe measures with: one device, one probe, one method ('nvrtc' or 'numba')."""

    def __init__(self, device: "CudaDevice", probe: Probe, method: str, quick: bool) -> None:
        self.device, self.probe, self.method, self.quick = device, probe, method, quick
        self.machine = device.machine
        self.repeats = 9 if quick else 15
        self.arrays = device.cupy
        self._last: Cubin | None = None

    @property
    def shared_base(self) -> int:
        """Behind the system's own part, 1 KiB of each block from compute capability 8.0 on."""
        return self.device.attributes.get("ReservedSharedMemoryPerBlock", 0)

    # Kernels and data ------------------------------------------------------------------------------------------------

    def kernels(self, point: Point) -> tuple[Kernel, ...]:
        """The kernels that the probe builds for `point`, in order. Raises BuildError, ContractError."""
        assert self.probe.builds is not None, f"{self.probe.name} measures with kernels and declares no builds"
        kernels = tuple(self._kernel(build) for build in self.probe.builds(point))
        self._last = kernels[-1].cubin
        return kernels

    def _kernel(self, build: Build) -> Kernel:
        """Compiled, checked and loaded once per worker: a sweep of a hundred points often shares one build."""
        key = (self.probe.name, self.method, build)
        if key not in self.device.kernels:
            compiler = compile_twin if self.method == "numba" else compile_probe
            cubin = compiler(self.probe, build, self.machine.arch)
            sass.require(build.contract, cubin.instructions(), self.machine.arch, cubin.resources, self.probe.name)
            self.device.kernels[key] = Kernel(self.device.load(cubin).function, cubin)
        return self.device.kernels[key]

    def patched(self, kernel: Kernel, stalls: Sequence[tuple[int, int]]) -> Kernel:
        """`kernel` with other stall counts: (instruction number, cycles) each. Raises InputError, DeviceError.

        Opcodes and operands stay, so the contract that was checked still holds; the result may not.
        """
        assert kernel.cubin is not None
        image = kernel.cubin.image
        for index, stall in stalls:
            image = sass.patch_stall(image, kernel.cubin.kernel, index, stall)
        cubin = replace(kernel.cubin, image=image, sha256=cache.digest(image), path=cache.write_image(image))
        return Kernel(self.device.load(cubin).function, cubin)

    def stalls(self, kernel: Kernel, contract: SassContract) -> tuple[tuple[int, int], ...]:
        """(instruction number, stall) of every operation of a chain that another one of it reads."""
        assert kernel.cubin is not None
        return sass.stalls(contract, kernel.cubin.instructions())

    def build_info(self) -> tuple[str, int] | None:
        """(cubin hash, registers) of the last point's kernel, for its records."""
        return (self._last.sha256, self._last.resources.registers) if self._last else None

    def array(self, values: NDArray[Any]) -> Any:
        return self.arrays.asarray(values)

    def empty(self, nbytes: int, aligned_to: int = 8) -> Any:
        """Uninitialised device memory, 8-byte elements, from a multiple of `aligned_to` bytes on."""
        words, spare = math.ceil(nbytes / 8), aligned_to // 8 - 1
        whole = self.arrays.empty(words + spare, np.uint64)
        skipped = -whole.data.ptr % aligned_to // 8 if spare else 0
        return whole[skipped : skipped + words]

    def inputs(self, kind: str, count: int, dtype: Any = np.float32) -> Any:
        """`count` values: 'zeros', 'normal' (N(0, 1)) or 'bits' (uniform random bits), as `dtype`."""
        if kind == "zeros":
            return self.arrays.zeros(count, dtype)
        if kind == "normal":
            return self.arrays.random.standard_normal(count, dtype=np.float32).astype(dtype)
        nbytes = count * np.dtype(dtype).itemsize
        return self.arrays.random.randint(0, 256, nbytes, dtype=np.uint8).view(dtype)

    def host(self, array: Any) -> NDArray[Any]:
        found: NDArray[Any] = array.get()
        return found

    def tensor_map(self, array: Any, box: tuple[int, ...], swizzle: Swizzle) -> Any:
        """Its misses bring in 256 bytes, as those of attention's kernels did before 2026-11-27."""
        return tensor_map.parameter(tensor_map.encode(array, box, "u16", swizzle, PROMOTION_BYTES))

    def footprint(self, nbytes: int) -> int:
        return nbytes

    def trips(self, count: int) -> int:
        return count

    # Timing ----------------------------------------------------------------------------------------------------------

    def cycles(self, short: Launch, long: Launch, operations: float) -> Measured:
        """Cycles per operation: (long - short) / operations, each the span from a block's first start to its last end.

        `operations` is how many more operations each block (or chain) does in `long`. The median over blocks of each
        repeat counts, so a latency is the mean SM's, and its spread is over repeats.
        """
        self._prepare(short, long)

        def batch(repeats: int) -> NDArray[np.float64]:
            shape = (repeats, 2, short.grid, short.block // WARP, 2)
            clocks = self.arrays.zeros(shape, np.int64)
            for i in range(repeats):
                self._launch(short, clocks[i, 0])
                self._launch(long, clocks[i, 1])
            start, end = np.moveaxis(clocks.get(), -1, 0)
            spans = end.max(axis=3) - np.where(start > 0, start, LATE).min(axis=3)  # idle warps report nothing
            slopes: NDArray[np.float64] = np.median(spans[:, 1] - spans[:, 0], axis=1) / operations
            return slopes

        return self._windowed(batch)

    def timed(
        self,
        launch: Launch,
        cold: bool = False,
        inner: int = 1,
        spaced_s: float = 0.0,
        behind: Callable[[], object] | None = None,
    ) -> Measured:
        """Seconds per launch, by events around a graph that holds `inner` launches.

        cold       the L2 is flushed before each repeat (a memset of twice its size), and `inner` must be 1
        spaced_s   idle seconds before each repeat, so that the chip cools; 0 is the sustained rate
        behind     enqueues what runs before each repeat, untimed: another flush, say, than that of `cold`
        """
        cupy, stream = self.arrays, self.device.stream
        scratch = self.empty(2 * (self.machine.l2_bytes or 2**26)) if cold else None
        self._prepare(launch)
        with self.device.guard(f"capture {self.probe.name}"):
            self._launch(launch)
            stream.synchronize()
            stream.begin_capture()
            for _ in range(inner):
                self._launch(launch)
            graph = stream.end_capture()

        def batch(repeats: int) -> NDArray[np.float64]:
            pairs = []
            for _ in range(repeats):
                if spaced_s:
                    stream.synchronize()
                    time.sleep(spaced_s)
                if scratch is not None:
                    scratch.fill(1)
                if behind is not None:
                    behind()
                begin, end = cupy.cuda.Event(), cupy.cuda.Event()
                begin.record(stream)
                graph.launch(stream)
                end.record(stream)
                pairs.append((begin, end))
            stream.synchronize()
            return np.array([cupy.cuda.get_elapsed_time(*pair) * 1e-3 / inner for pair in pairs])

        return self._windowed(batch)

    def soak(self, launch: Launch, seconds: int) -> tuple[Second, ...]:
        """So many seconds of one launch after another: time, clock, watts and heat of each. Raises DeviceError.

        The kernel's last argument are its clocks, which nobody reads here.
        """
        clocks, gpu = self.clocks(launch), self.device.gpu
        self._prepare(launch)

        def load(span_s: float) -> tuple[int, float, float]:
            count = max(1, math.ceil(span_s / each_s))
            begin, end = self.arrays.cuda.Event(), self.arrays.cuda.Event()
            before = stamp(self.device)
            begin.record(self.device.stream)
            for _ in range(count):
                self._launch(launch, clocks)
            end.record(self.device.stream)
            after = stamp(self.device)
            self.synchronize()
            mhz, _ = clock_between(before.get(), after.get())
            return count, self.arrays.cuda.get_elapsed_time(begin, end) * 1e-3, mhz

        with self.device.guard(f"soak {self.probe.name}"):
            self._launch(launch, clocks)
            each_s = FIRST_LAUNCH_S
            count, took, _ = load(4 * FIRST_LAUNCH_S)
            each_s = took / count
            return watched(seconds, load, partial(nvml.energy_joules, gpu), partial(nvml.temperature_c, gpu))

    def clocks(self, launch: Launch) -> Any:
        """Room for the readings of one launch: the argument that `cycles` adds by itself."""
        return self.arrays.zeros((launch.warps, 2), np.int64)

    def launch(self, launch: Launch, *more: Any) -> None:
        """Enqueue one launch on the device's stream, untimed."""
        with self.device.guard(f"launch {self.probe.name}"):
            self._launch(launch, *more)

    def synchronize(self) -> None:
        self.device.stream.synchronize()

    def _launch(self, launch: Launch, *more: Any) -> None:
        launch.kernel.function((launch.grid,), (launch.block,), (*launch.args, *more), shared_mem=launch.smem_bytes)

    def _prepare(self, *launches: Launch) -> None:
        """Set each kernel's carve-out: all L1 where it uses no shared memory, all shared memory where it does."""
        with self.device.guard(f"prepare {self.probe.name}"):
            for launch in launches:
                function = launch.kernel.function
                function.preferred_shared_memory_carveout = 100 if launch.smem_bytes else 0
                if launch.smem_bytes > 48 * 1024:
                    function.max_dynamic_shared_size_bytes = launch.smem_bytes

    def _windowed(self, batch: Callable[[int], NDArray[np.float64]]) -> Measured:
        """Run `batch` long enough for the clock's window, with a clock stamp on either side."""
        doing = f"measure {self.probe.name} ({self.method})"
        with self.device.guard(doing):
            batch(2)  # warm: instruction caches, TLBs, the clock's ramp
            repeats = self.repeats
            for _ in range(ATTEMPTS):
                before = stamp(self.device)
                values = batch(repeats)
                mhz, window_ns = clock_between(before.get(), stamp(self.device).get())
                needed = WINDOW_TICKS * self.device.calibration.globaltimer_tick_ns
                if window_ns >= needed:
                    return _spread(values, mhz)
                longer = math.ceil(1.3 * repeats * needed / max(window_ns, 1.0))
                repeats = min(MAX_REPEATS, max(2 * repeats, longer))
        raise MeasureError(
            f"{self.machine.name} measured {self.probe.name} for {window_ns / 1e3:.0f} us only, too short for a clock "
            f"reading over {WINDOW_TICKS} ticks of {self.device.calibration.globaltimer_tick_ns:g} ns; lengthen the "
            "probe's chain."
        )


def stamp(device: "CudaDevice") -> Any:
    """Enqueue a reading of the cycle counter and the timer of every SM; the array that will hold them."""
    stamps = device.cupy.zeros((1024, 2), np.int64)
    device.clock_stamp((4 * device.machine.sm_count,), (1,), (stamps,))
    return stamps


def clock_between(before: NDArray[np.int64], after: NDArray[np.int64]) -> tuple[float, float]:
    """(SM MHz, window in ns) between two stamps: the median over the SMs that both reached."""
    seen = (before[:, 1] > 0) & (after[:, 1] > before[:, 1])
    if not seen.any():
        return math.nan, 0.0
    cycles, ns = (after - before)[seen].T.astype(np.float64)
    return float(np.median(cycles / ns) * 1e3), float(np.median(ns))
