"""What a probe launches, and what it gets back, whoever runs it: CudaBench on a GPU, EmulatedBench on a CPU.

The convention for kernels that read the clock: the last argument is `long long* clocks`, and every warp writes its
start and end to clocks[2 * warp] and clocks[2 * warp + 1], warps numbered through all blocks.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from microbench.device.protocol import Kernel
from microbench.emulator.tensor_map import Swizzle
from microbench.errors import MeasureError
from microbench.machine.arch import Machine
from microbench.measure.soak import Second
from microbench.point import Point
from microbench.probe import Sample, SassContract

WARP = 32


@dataclass(frozen=True)
class Expected:
    """What a device array holds when a launch has ended, by NumPy.

    values   called before the launch, whose dtype and size say how much of the array is looked at
    within   the largest difference, as a share of 1 + |expected|; 0 is bit for bit
    """

    array: Any
    values: Callable[[], NDArray[Any]]
    within: float = 0.0

    def require(self, found: NDArray[Any], values: NDArray[Any], name: str) -> None:
        """Hold what was `found` in the array against its `values`. Raises MeasureError."""
        found = found.reshape(-1).view(np.uint8)[: values.nbytes].view(values.dtype)
        values = values.reshape(-1)
        with np.errstate(invalid="ignore"):  # what was found may be no number
            near = np.abs(found - values) <= self.within * (1 + np.abs(values)) if self.within else found == values
        if not near.all():
            at = int(np.argmin(near))
            raise MeasureError(
                f"{name} does not compute what it declares: {np.count_nonzero(~near)} of {len(values)} values differ"
                f" from NumPy's, the first at {at}: {found[at]} in the place of {values[at]}."
            )


@dataclass(frozen=True)
class Launch:
    """One launch: blocks, threads a block, arguments (device arrays, NumPy scalars), dynamic shared memory in bytes.

    `cluster` is what the kernel's __cluster_dims__ says, by which a GPU forms clusters and the emulator cannot.
    """

    kernel: Kernel
    grid: int
    block: int
    args: tuple[Any, ...]
    smem_bytes: int = 0
    expects: tuple[Expected, ...] = ()
    cluster: int = 1

    def held(self, execute: Callable[[], None], bench: "Bench", name: str) -> int:
        """Execute it and hold what it leaves against what it declares: the number of arrays. Raises MeasureError."""
        wanted = [expected.values() for expected in self.expects]
        execute()
        for expected, values in zip(self.expects, wanted, strict=True):
            expected.require(bench.host(expected.array), values, name)
        return len(wanted)

    @property
    def warps(self) -> int:
        return self.grid * (self.block // WARP)


@dataclass(frozen=True)
class Measured:
    """Median and spread over `n` repeats, in the unit the caller asked for, and the SM clock meanwhile."""

    value: float
    low: float
    high: float
    n: int
    clock_mhz: float

    def sample(self, metric: str, scale: float = 1.0, *flags: str) -> Sample:
        return Sample(metric, self.value * scale, self.low * scale, self.high * scale, self.n, self.clock_mhz, flags)

    def inverse(self, metric: str, work: float, *flags: str) -> Sample:
        return Sample(metric, work / self.value, work / self.high, work / self.low, self.n, self.clock_mhz, flags)

    def latency(self) -> list[Sample]:
        """Cycles, and the same in ns at the measured clock: of what lies beyond the SM, whose clocks are others."""
        return [self.sample("latency_cycles"), self.sample("latency_ns", 1e3 / self.clock_mhz)]


class Bench(Protocol):
    """What a CUDA probe's `run` measures with.

    arrays   the array library of the device: CuPy, or NumPy where the device is emulated
    quick    fewer repeats
    """

    machine: Machine
    arrays: Any
    quick: bool

    @property
    def shared_base(self) -> int:
        """The address at which a block's dynamic shared memory begins."""

    def kernels(self, point: Point) -> tuple[Kernel, ...]:
        """The kernels that the probe builds for `point`, in order. Raises BuildError, ContractError."""

    def patched(self, kernel: Kernel, stalls: Sequence[tuple[int, int]]) -> Kernel:
        """`kernel` with other stall counts: (instruction number, cycles) each."""

    def stalls(self, kernel: Kernel, contract: SassContract) -> tuple[tuple[int, int], ...]:
        """(instruction number, stall) of every operation of a chain that another one of it reads."""

    def array(self, values: NDArray[Any]) -> Any:
        """A device copy of a NumPy array."""

    def empty(self, nbytes: int, aligned_to: int = 8) -> Any:
        """Uninitialised device memory, 8-byte elements; where time is measured from a multiple of `aligned_to` on."""

    def inputs(self, kind: str, count: int, dtype: Any = np.float32) -> Any:
        """`count` values: 'zeros', 'normal' (N(0, 1)) or 'bits' (uniform random bits), as `dtype`."""

    def host(self, array: Any) -> NDArray[Any]:
        """A NumPy copy of a device array."""

    def tensor_map(self, array: Any, box: tuple[int, ...], swizzle: Swizzle) -> Any:
        """The argument by which TMA copies boxes of a row-major array of 16-bit words; see `tensor_map.py` of both."""

    def footprint(self, nbytes: int) -> int:
        """As many bytes as a probe may touch where it wants `nbytes`: fewer where nothing is timed."""

    def trips(self, count: int) -> int:
        """How often a loop goes round that wants `count`: less often where nothing is timed."""

    def clocks(self, launch: Launch) -> Any:
        """Room for the readings of one launch: the argument that `cycles` adds by itself."""

    def launch(self, launch: Launch, *more: Any) -> None:
        """Enqueue one launch, untimed."""

    def synchronize(self) -> None:
        """Wait for what was enqueued."""

    def cycles(self, short: Launch, long: Launch, operations: float) -> Measured:
        """Cycles per operation: (long - short) / operations."""

    def timed(
        self,
        launch: Launch,
        cold: bool = False,
        inner: int = 1,
        spaced_s: float = 0.0,
        behind: Callable[[], object] | None = None,
    ) -> Measured:
        """Seconds per launch; what `behind` enqueues runs before each repeat, untimed."""

    def soak(self, launch: Launch, seconds: int) -> tuple[Second, ...]:
        """So many seconds of one launch after another; the kernel's last argument are its clocks."""
