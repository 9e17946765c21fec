"""EmulatedGpu: an architecture that this machine lacks, on the CPU. `emulated:sm100a` opens it.

Kernels are executed, and nothing is timed: it has no clock, so that no row of it may enter a run or a profile.
"""

from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from microbench.device.protocol import EMULATED, Kind, measures_nothing
from microbench.emulator import EmulatedDevice, Mode
from microbench.machine.arch import DeviceFacts, Machine, by_name

SM_COUNT = 2  # the fewest by which a probe may mistake one SM's share for the chip's
ROOM_BYTES = 1 << 40  # no probe leaves a point out for want of memory or cache; footprints are capped instead


class _Buffer(np.ndarray[Any, Any]):
    """An array of emulated memory, with what probes ask of a CuPy array."""

    @property
    def data(self) -> Any:
        return SimpleNamespace(ptr=self.ctypes.data)

    def get(self) -> NDArray[Any]:
        return np.array(self)


class EmulatedGpu:
    """A GPU of `arch` in one mode of the emulator. Raises UnknownArch, EnvironmentLacks without a C++ compiler."""

    kind: Kind = "emulated"

    def __init__(self, arch: str, mode: Mode = "lazy") -> None:
        row = by_name(arch)
        # Probes' kernels share nothing between threads but what they time, and races are the emulator's dearest check.
        self.emulator = EmulatedDevice(mode, races=False)
        self.machine = Machine(
            gpu=f"{EMULATED}-{arch}",
            name=f"emulated {row.generation} ({arch})",
            arch=row,
            sm_count=SM_COUNT,
            clock_hz=None,
            dram_bytes_per_s=None,
            dram_bytes=ROOM_BYTES,
            l2_bytes=ROOM_BYTES,
        )

    def buffer(self, values: NDArray[Any]) -> _Buffer:
        """A copy of `values` in emulated global memory, behind a guard page."""
        return self.emulator.asarray(values).view(_Buffer)

    def facts(self) -> DeviceFacts:
        """Refused: a run's Environment tells of a machine that was measured. Raises DeviceError."""
        raise measures_nothing(f"{EMULATED}:{self.machine.arch.name}")

    def flags(self) -> tuple[str, ...]:
        return ()

    def close(self) -> None:
        """Buffers go with their last reader."""
