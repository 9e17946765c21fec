"""One door to where a kernel runs: `cuda:N` through CuPy, `host` through Numba, `emulated:<architecture>` on the CPU.

`choose` looks without making a GPU context (NVML only), so that a supervisor may call it; `open_device` is for workers.
"""

from dataclasses import dataclass

from microbench.device.protocol import EMULATED, Device, measures_nothing
from microbench.errors import InputError
from microbench.machine import arch, nvml


def require_measuring(device: str) -> None:
    """Raise DeviceError for a device on which nothing can be timed."""
    if device.startswith(EMULATED):
        raise measures_nothing(device)


@dataclass(frozen=True)
class Found:
    """What `choose` found: the device to open and one sentence that says why."""

    device: str
    why: str


def choose(wanted: str | None = None) -> Found:
    """The device to measure: `wanted` ('host', 'cuda:N') or the best there is. Raises InputError for another name."""
    gpus = nvml.visible_gpus()
    if wanted == "host":
        return Found("host", "the host lane was asked for")
    if wanted is None:
        if gpus:
            return Found("cuda:0", f"found {gpus[0]}")
        return Found("host", f"found no NVIDIA GPU ({nvml.why_no_gpu()}), so this CPU is measured")
    kind, _, index = wanted.partition(":")
    if kind == EMULATED and index not in arch.CUDA:
        raise InputError(f"No architecture is called {index!r}; write emulated: and one of {', '.join(arch.CUDA)}.")
    if kind == EMULATED:
        return Found(f"{EMULATED}:{arch.by_name(index).name}", "an emulated GPU was asked for; nothing is timed")
    if kind != "cuda" or not (index or "0").isdecimal():
        raise InputError(f"No device is called {wanted!r}; use 'host', 'cuda:N' or 'emulated:<architecture>'.")
    if int(index or 0) >= len(gpus):
        raise InputError(
            f"Device {wanted!r} is not here: this machine shows {len(gpus)} NVIDIA GPUs. Use --device host."
        )
    return Found(f"cuda:{int(index or 0)}", f"found {gpus[int(index or 0)]}")


def prepare(name: str) -> None:
    """Import what `open_device` needs, and touch no device. Raises EnvironmentLacks where CuPy is absent."""
    if name == "host":
        import microbench.device.host  # noqa: F401
    elif not name.startswith(EMULATED):
        from microbench.device.cuda import load_cupy

        load_cupy()


def open_device(name: str) -> Device:
    """Open 'host', 'cuda:N' or 'emulated:sm100a' in this process. Raises DeviceError, EnvironmentLacks, UnknownArch."""
    if name == "host":
        from microbench.device.host import HostDevice

        return HostDevice()
    if name.startswith(EMULATED):
        from microbench.device.emulated import EmulatedGpu

        return EmulatedGpu(name.partition(":")[2])
    from microbench.device.cuda import CudaDevice

    return CudaDevice(int(name.partition(":")[2] or 0))
