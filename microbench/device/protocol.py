"""What every device is, and what a kernel is that one has loaded."""

from dataclasses import dataclass
from typing import Any, Literal, Protocol

from microbench.compile import Cubin
from microbench.errors import DeviceError
from microbench.machine.arch import DeviceFacts, Machine

Kind = Literal["host", "cuda", "emulated"]
EMULATED = "emulated"


class Device(Protocol):
    kind: Kind
    machine: Machine

    def facts(self) -> DeviceFacts:
        """What the Environment records of it."""

    def flags(self) -> tuple[str, ...]:
        """What was wrong with the device during the last point: 'busy', 'throttled:<reason>'. Clears itself."""

    def close(self) -> None:
        """Free everything; the device can be opened again."""


def measures_nothing(device: str) -> DeviceError:
    return DeviceError(
        f"{device} measures nothing, so it has no run; `smscope run --device {device}` executes probes there and keeps "
        "nothing."
    )


@dataclass(frozen=True)
class Kernel:
    """A loaded kernel. The SASS of its cubin kept its contract; an emulated one has none."""

    function: Any
    cubin: Cubin | None = None
