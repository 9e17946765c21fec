"""How things are timed: `cuda` on a GPU, `host` on a CPU, and `emulated` without time. A probe's `run` gets a bench."""

from typing import TYPE_CHECKING, Any

from microbench.errors import DeviceError

if TYPE_CHECKING:
    from microbench.device.protocol import Device
    from microbench.probe import Probe


def prepare(device: str) -> None:
    """Import what `open_bench` needs for a device of this name ('host', 'cuda:N')."""
    if device == "host":
        import microbench.measure.host
    elif device.startswith("cuda"):
        import microbench.measure.cuda  # noqa: F401


def open_bench(device: "Device", probe: "Probe", method: str, quick: bool) -> Any:
    """What `probe.run` measures with on an open device: CudaBench, HostBench or EmulatedBench.

    `method` is nvrtc or numba on a GPU, host on a CPU. Raises DeviceError for the Numba twin of an emulated GPU, which
    has no C++ to execute.
    """
    opened: Any = device  # its kind says of which class it is
    if device.kind == "host":
        from microbench.measure.host import HostBench

        return HostBench(opened, quick)
    if device.kind == "cuda":
        from microbench.measure.cuda import CudaBench

        return CudaBench(opened, probe, method, quick)
    from microbench.measure.emulated import EmulatedBench

    if method != "nvrtc":
        raise DeviceError(f"{device.machine.name} executes CUDA C++ alone, and not the method {method}.")
    return EmulatedBench(opened, probe, quick)
