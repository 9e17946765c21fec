"""A GPU of which everything is known: its clock, what an operation costs, what its L2 holds. Time passes as it is told.

It stands where CudaDevice does, so that `measure` can be asked for numbers whose truth the test has written down.
"""

from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from microbench.device.cuda import Calibration
from microbench.device.protocol import Kernel
from microbench.machine import arch
from microbench.measure.cuda import CudaBench
from microbench.measure.launch import Launch
from microbench.probe import Probe

LAUNCH_NS = 4000.0
STAMP_NS = 2500.0


class DeviceArray(np.ndarray):  # type: ignore[type-arg]
    """What cupy.zeros gives: here a NumPy array, whose writes the L2 sees."""

    gpu: "ScriptedDevice | None"

    def __array_finalize__(self, parent: Any) -> None:
        self.gpu = getattr(parent, "gpu", None)

    def get(self) -> Any:
        """A copy on the host, by when everything enqueued has run."""
        return np.array(self)

    def max(self, *given: Any, **named: Any) -> Any:
        """A read of all of it."""
        if self.gpu is not None:
            self.gpu.write(self.nbytes, changed=False)
        return super().max(*given, **named)

    def fill(self, value: Any) -> None:
        """A memset."""
        super().fill(value)
        if self.gpu is not None:
            self.gpu.write(self.nbytes)


@dataclass
class ScriptedDevice:
    """One GPU. SM number `n`'s cycle counter is `n * 10**9` ahead: only differences on one SM mean something."""

    mhz: float = 1755.0
    sm_count: int = 4
    l2_bytes: int = 1 << 20
    tick_ns: float = 32.0
    now_ns: float = 1e6
    written_bytes: int = 0  # since a kernel last read its data
    changed_bytes: int = 0  # that the L2 holds, and DRAM does not yet
    captured: list[Callable[[], None]] | None = None
    disturbed: tuple[str, ...] = ()
    watts: float | None = 500.0
    kernels: dict[Any, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.machine = arch.Machine(
            "scripted", "Scripted GPU", arch.by_name("sm90a"), self.sm_count, 2e9, 3e12, 1 << 34, self.l2_bytes
        )
        self.calibration = Calibration(self.tick_ns, 0.0)
        self.cupy, self.stream = _Cupy(self), _Stream(self)

    @property
    def gpu(self) -> "ScriptedDevice":
        """What NVML is asked about."""
        return self

    def flags(self) -> tuple[str, ...]:
        """What disturbs it now."""
        return self.disturbed

    def power_w(self) -> float | None:
        """What it takes now."""
        return self.watts

    def guard(self, _doing: str) -> Any:
        """Nothing fails here."""
        return nullcontext()

    def cycles(self, sm: int) -> float:
        """The cycle counter of an SM, now."""
        return sm * 1e9 + self.now_ns * self.mhz / 1e3

    def clock_stamp(self, _grid: Any, _block: Any, args: Any) -> None:
        """The kernel of clock_stamp.cu: clock64 and globaltimer of each SM, the timer in whole ticks."""
        (stamps,) = args
        for sm in range(self.sm_count):
            stamps[sm] = round(self.cycles(sm)), self.now_ns // self.tick_ns * self.tick_ns
        self.now_ns += STAMP_NS

    def write(self, nbytes: int, changed: bool = True) -> None:
        """Something else goes through the L2, and stays there changed or as DRAM has it."""
        self.written_bytes += nbytes
        self.changed_bytes = min(self.l2_bytes, nbytes) if changed else max(0, self.changed_bytes - nbytes)

    def bench(self, quick: bool = False) -> CudaBench:
        """The very bench that a probe measures with."""
        probe = Probe("?", ("sm90a",), (), lambda _bench, _point: [], name="scripted")
        return CudaBench(self, probe, "nvrtc", quick)  # type: ignore[arg-type]


@dataclass
class ScriptedKernel:
    """A kernel with one warp a chain: `prologue` cycles, then `per_operation` for each of its first argument.

    Warps begin one cycle after another, and those before the last are done in half the time.

    Its data fit the L2: a launch that finds them there takes `warm_ns`, any other `cold_ns`.
    """

    device: ScriptedDevice
    per_operation: float = 0.0
    prologue: float = 0.0
    warm_ns: float = 0.0
    cold_ns: float = 0.0
    idle_warps: int = 0  # of each block, the last ones: they report nothing
    preferred_shared_memory_carveout: int = -1
    max_dynamic_shared_size_bytes: int = 0

    def __call__(self, grid: tuple[int], block: tuple[int], args: tuple[Any, ...], shared_mem: int = 0) -> None:
        """Launch it, or put the launch into the graph that is being captured."""
        if self.device.captured is not None:
            self.device.captured.append(lambda: self.run(grid[0], args))
        else:
            self.run(grid[0], args)

    def run(self, blocks: int, args: tuple[Any, ...]) -> None:
        """One launch, blocks on SMs in turn."""
        device = self.device
        device.now_ns += LAUNCH_NS
        busy = self.prologue + self.per_operation * int(args[0])
        if isinstance(args[-1], DeviceArray):
            clocks = args[-1].reshape(blocks, -1, 2)
            warps = clocks.shape[1] - self.idle_warps
            took = np.where(np.arange(warps) == warps - 1, busy, busy / 2)
            for number in range(blocks):
                begin = device.cycles(number % device.sm_count) + np.arange(warps)
                clocks[number, :warps, 0], clocks[number, :warps, 1] = begin, begin + took
        missed = device.written_bytes >= device.l2_bytes
        device.now_ns += busy * 1e3 / device.mhz + (self.cold_ns if missed else self.warm_ns)
        device.written_bytes = 0

    def launch(self, operations: int, blocks: int = 4, threads: int = 64, smem_bytes: int = 0) -> Launch:
        """A launch of it."""
        kernel = Kernel(self)
        return Launch(kernel, blocks, threads, (np.int32(operations),), smem_bytes)


@dataclass
class _Graph:
    device: ScriptedDevice
    launches: list[Callable[[], None]]

    def launch(self, _stream: Any) -> None:
        for each in self.launches:
            each()


@dataclass
class _Stream:
    device: ScriptedDevice

    def __enter__(self) -> "_Stream":
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def synchronize(self) -> None:
        pass

    def begin_capture(self) -> None:
        self.device.captured = []

    def end_capture(self) -> _Graph:
        launches, self.device.captured = self.device.captured, None
        assert launches is not None
        return _Graph(self.device, launches)


class _Event:
    at_ns = 0.0

    def record(self, stream: _Stream) -> None:
        self.at_ns = stream.device.now_ns


class _Cupy:
    """The few names of CuPy that `measure` asks for."""

    def __init__(self, device: ScriptedDevice) -> None:
        self.device, self.cuda = device, self
        self.Event = _Event
        self.ExternalStream = lambda _handle: device.stream

    def zeros(self, shape: Any, dtype: Any) -> DeviceArray:
        array = np.zeros(shape, dtype).view(DeviceArray)
        array.gpu = self.device
        return array

    empty = zeros

    def get_elapsed_time(self, begin: _Event, end: _Event) -> float:
        return (end.at_ns - begin.at_ns) * 1e-6
