"""EmulatedBench: a probe's `run` without a GPU. Each launch is executed once and its results are held against NumPy's.

Nothing is timed: what a probe makes of these Measured values means nothing, and who runs a probe here drops it.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from microbench.compile import HEADERS
from microbench.device.protocol import Kernel
from microbench.emulator import Swizzle, TensorMap
from microbench.errors import MeasureError
from microbench.measure.launch import WARP, Launch, Measured
from microbench.measure.soak import Second
from microbench.point import Point
from microbench.probe import Build, Probe, SassContract

if TYPE_CHECKING:
    from microbench.device.emulated import EmulatedGpu

MOST_BYTES = 512 * 1024  # a power of two, as the masks of footprints want, and eight of the largest chunk in flight
MOST_TRIPS = 3  # odd: what an even number of trips adds to itself by XOR is gone
SEED = 7
SHARED_BASE = 1024  # kSharedBase of emulator/runtime
NO_READING = np.int64(-1)  # the emulator's clock counts its switches between threads, from 0
NO_TIME = Measured(1.0, 1.0, 1.0, 1, 1.0)
NO_SECOND = Second(1.0, 1.0, None, None)


class EmulatedBench:
    """What a CUDA probe measures with where there is no GPU. `checked` counts the arrays held against NumPy."""

    def __init__(self, device: "EmulatedGpu", probe: Probe, quick: bool) -> None:
        self.device, self.probe, self.quick = device, probe, quick
        self.machine = device.machine
        self.arrays: Any = np
        self.checked = 0
        self._random = np.random.default_rng(SEED)

    @property
    def shared_base(self) -> int:
        return SHARED_BASE

    def kernels(self, point: Point) -> tuple[Kernel, ...]:
        """The kernels that the probe builds for `point`, in order. Raises BuildError, EnvironmentLacks."""
        assert self.probe.builds is not None, f"{self.probe.name} measures with kernels and declares no builds"
        return tuple(self._kernel(build) for build in self.probe.builds(point))

    def _kernel(self, build: Build) -> Kernel:
        source, name = self.probe.source.read_text(encoding="utf-8"), self.probe.source.name
        function = self.device.emulator.load(
            source, name, kernel=build.kernel or self.probe.name, defines=build.defines, include=(HEADERS,)
        )
        return Kernel(function)

    def patched(self, kernel: Kernel, stalls: Sequence[tuple[int, int]]) -> Kernel:
        """The same kernel: nobody waits here, so that no stall is too short."""
        return kernel

    def stalls(self, kernel: Kernel, contract: SassContract) -> tuple[tuple[int, int], ...]:
        """One instruction that could not be issued earlier: there is no machine code."""
        return ((0, 1),)

    def array(self, values: NDArray[Any]) -> Any:
        """A copy behind a guard page."""
        return self.device.buffer(values)

    def empty(self, nbytes: int, aligned_to: int = 8) -> Any:
        """Memory of 8-byte elements that holds random bits: what a kernel leaves unwritten is no zero by chance.

        It ends at a guard page, and is aligned to no more than 8 bytes: nothing is timed here.
        """
        return self.array(self._random.integers(0, 2**64, -(-nbytes // 8), np.uint64))

    def inputs(self, kind: str, count: int, dtype: Any = np.float32) -> Any:
        """`count` values: 'zeros', 'normal' (N(0, 1)) or 'bits' (uniform random bits), as `dtype`."""
        if kind == "zeros":
            return self.array(np.zeros(count, dtype))
        if kind == "normal":
            return self.array(self._random.standard_normal(count, np.float32).astype(dtype))
        return self.array(np.frombuffer(self._random.bytes(count * np.dtype(dtype).itemsize), dtype))

    def host(self, array: Any) -> NDArray[Any]:
        return np.array(array)

    def tensor_map(self, array: Any, box: tuple[int, ...], swizzle: Swizzle) -> Any:
        return TensorMap(array, box, "u16", swizzle).emulated()

    def footprint(self, nbytes: int) -> int:
        return min(nbytes, MOST_BYTES)

    def trips(self, count: int) -> int:
        return min(count, MOST_TRIPS)

    def clocks(self, launch: Launch) -> Any:
        return self.array(np.zeros((launch.warps, 2), np.int64))

    def synchronize(self) -> None:
        """A launch has ended when it returns."""

    def launch(self, launch: Launch, *more: Any) -> None:
        """Execute one launch and look at what it left. Raises DeviceError, MeasureError."""
        args, grid, block = (*launch.args, *more), (launch.grid,), (launch.block,)
        how = {"shared_mem": launch.smem_bytes, "cluster": (launch.cluster,)}
        execute = partial(launch.kernel.function, grid, block, args, **how)
        self.checked += launch.held(execute, self, self.probe.name)

    def cycles(self, short: Launch, long: Launch, operations: float) -> Measured:
        """Execute both; every block must have reported a start and a later end. Raises DeviceError, MeasureError."""
        for launch in (short, long):
            clocks = self.array(np.full((launch.grid, launch.block // WARP, 2), NO_READING))
            self.launch(launch, clocks)
            start, end = clocks.max(axis=1).T  # idle warps report nothing
            if not ((start > NO_READING) & (end >= start)).all():
                raise MeasureError(
                    f"{self.probe.name} leaves blocks without two readings of the clock; see timing.cuh."
                )
        return NO_TIME

    def timed(
        self,
        launch: Launch,
        cold: bool = False,
        inner: int = 1,
        spaced_s: float = 0.0,
        behind: Callable[[], object] | None = None,
    ) -> Measured:
        """Execute it once, behind what it is to stand behind. Raises DeviceError, MeasureError."""
        if behind is not None:
            behind()
        self.launch(launch)
        return NO_TIME

    def soak(self, launch: Launch, seconds: int) -> tuple[Second, ...]:
        """Execute it once. Raises DeviceError, MeasureError."""
        self.launch(launch, self.clocks(launch))
        return (NO_SECOND,)
