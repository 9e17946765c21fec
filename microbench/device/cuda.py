"""CudaDevice: one GPU through CuPy, opened inside a worker process.

CuPy loads finished cubins, allocates and launches; it never compiles here (its own compile appends -ftz=true).
"""

import os
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from microbench.compile import HEADERS, Cubin, compile_source
from microbench.device.cuda_kernel import CudaKernel
from microbench.device.protocol import Kernel, Kind
from microbench.errors import DeviceError, EnvironmentLacks
from microbench.machine import arch, nvml
from microbench.machine.arch import DeviceFacts
from microbench.probe import Build

STAMP_SOURCE = HEADERS / "clock_stamp.cu"


@dataclass(frozen=True)
class Calibration:
    """The GPU's own clocks: the timer's tick, and what two clock reads with nothing between them cost."""

    globaltimer_tick_ns: float
    clock_overhead_cycles: float


def load_cupy() -> Any:
    """CuPy, imported: 1 to 3 s, and no context on any GPU. Raises EnvironmentLacks."""
    # NVML's order, so that the GPU described by NVML is the GPU measured.
    os.environ.setdefault("CUDA_DEVICE_ORDER", "PCI_BUS_ID")
    try:
        import cupy
    except ImportError as error:
        raise EnvironmentLacks(
            "CuPy is not installed, so no GPU can be measured; `make bench` installs it, or `pip install "
            "cupy-cuda13x` (cupy-cuda12x for a driver of CUDA 12)."
        ) from error
    return cupy


class CudaDevice:
    """The `index`-th visible GPU. Raises EnvironmentLacks without CuPy, DeviceError where the GPU does not answer."""

    kind: Kind = "cuda"

    def __init__(self, index: int) -> None:
        self.cupy = cupy = load_cupy()
        nvml.hold()  # a question for each point: each would open and shut it
        self.gpu = nvml.visible_gpus()[index]
        with self.guard("open"):
            cupy.cuda.Device(index).use()
            self.attributes: dict[str, int] = cupy.cuda.Device(index).attributes
            # One stream for everything: data made on another one would still be in the making while it is measured.
            self.stream = cupy.cuda.Stream(non_blocking=True)
            self.stream.use()
        self.machine = self._machine()
        self.kernels: dict[tuple[str, str, Build], Kernel] = {}

    def _machine(self) -> arch.Machine:
        sm_hz, memory_hz = nvml.max_clocks_hz(self.gpu)
        width_bits = self.attributes.get("GlobalMemoryBusWidth", 0)
        # Both edges of the memory clock carry data (HBM, GDDR): 2619 MHz x 5120 bit x 2 = 3.35 TB/s on an H100 SXM.
        dram = 2 * memory_hz * width_bits / 8 if memory_hz and width_bits else None
        return arch.Machine(
            gpu=self.gpu.slug,
            name=self.gpu.name,
            arch=arch.by_compute_capability(*self.gpu.compute_capability),
            sm_count=self.attributes["MultiProcessorCount"],
            clock_hz=sm_hz,
            dram_bytes_per_s=dram,
            dram_bytes=self.gpu.memory_bytes,
            l2_bytes=self.attributes.get("L2CacheSize") or None,
        )

    def guard(self, doing: str) -> "_Guard":
        """Turn CuPy's errors into DeviceError: the context may be broken, the worker must end."""
        return _Guard(self.machine.name if hasattr(self, "machine") else self.gpu.name, doing)

    def load(self, cubin: Cubin) -> CudaKernel:
        with self.guard(f"load {cubin.kernel}"):
            function = self.cupy.RawModule(path=str(cubin.path)).get_function(cubin.kernel)
        return CudaKernel(function, self.stream)

    @cached_property
    def clock_stamp(self) -> Any:
        """Kernel: clock64 and globaltimer of every SM."""
        return self.load(self._stamp_cubin("clock_stamp"))

    def _stamp_cubin(self, kernel: str) -> Cubin:
        return compile_source(STAMP_SOURCE.read_text(), STAMP_SOURCE.name, self.machine.arch, (), kernel=kernel)

    @cached_property
    def calibration(self) -> Calibration:
        """Measured once per worker."""
        kernel = self.load(self._stamp_cubin("timer_tick"))
        ticks = self.cupy.zeros(2, np.int64)
        with self.guard("calibrate"):
            for _ in range(3):
                kernel((1,), (1,), (ticks,))
            tick, overhead = (float(value) for value in ticks.get())
        return Calibration(tick, overhead)

    def facts(self) -> DeviceFacts:
        cubin = self._stamp_cubin("clock_stamp")
        return replace(
            nvml.facts(self.gpu),
            nvrtc=cubin.nvrtc,
            nvrtc_flags=tuple(flag for flag in cubin.flags if not flag.startswith(("-I", "-D"))),
            clock_overhead_cycles=self.calibration.clock_overhead_cycles,
            globaltimer_tick_ns=self.calibration.globaltimer_tick_ns,
        )

    def flags(self) -> tuple[str, ...]:
        return nvml.trouble(self.gpu, os.getpid())

    def power_w(self) -> float | None:
        """What the board takes now; None where it does not say."""
        return nvml.power_w(self.gpu)

    def close(self) -> None:
        self.cupy.get_default_memory_pool().free_all_blocks()


class _Guard:
    def __init__(self, gpu: str, doing: str) -> None:
        self.gpu, self.doing = gpu, doing

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        if error is not None and type(error).__module__.startswith(("cupy", "cupy_backends")):
            raise DeviceError(
                f"{self.gpu} could not {self.doing}: {error}. The worker is started anew; if it recurs, look at "
                "`nvidia-smi` for other processes or an Xid error."
            ) from error
