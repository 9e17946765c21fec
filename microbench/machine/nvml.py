"""What NVML says of a GPU: which are visible, their state, and why a clock was held back. Makes no CUDA context.

NVML counts devices in PCI order and ignores CUDA_VISIBLE_DEVICES; `visible_gpus` maps one to the other, and workers
run with CUDA_DEVICE_ORDER=PCI_BUS_ID, so that cuda:N is the same GPU in both.
"""

import hashlib
import math
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

from microbench.errors import NoGpu
from microbench.machine.arch import DeviceFacts

# Reasons that slow a clock down; idle and application-clock settings are no throttle (nvml.h, nvmlClocksEventReason*).
_THROTTLE = {0x04: "power-cap", 0x08: "hw-slowdown", 0x20: "sw-thermal", 0x40: "hw-thermal", 0x80: "hw-power-brake"}


@dataclass(frozen=True)
class Gpu:
    index: int  # NVML's
    name: str
    memory_bytes: int
    compute_capability: tuple[int, int]
    mig: bool

    @property
    def slug(self) -> str:
        """The name of its runs and profile: h100-sxm-80gb."""
        return slug(self.name, self.memory_bytes)

    def __str__(self) -> str:
        major, minor = self.compute_capability
        return f"{self.name}, compute capability {major}.{minor}, {math.ceil(self.memory_bytes / 2**30)} GB"


def slug(name: str, memory_bytes: int) -> str:
    """Model, form factor and memory of a GPU, as a file name: letters, digits, dot and dash."""
    words = re.sub(r"[^a-z0-9. ]+", " ", name.lower())
    words = re.sub(r"\b(nvidia|tesla|geforce|quadro|graphics)\b", " ", words)
    mig = re.search(r"\bmig ([0-9a-z.]+ ?[0-9a-z.]*)", words)
    if mig:
        words = words[: mig.start()]
    said = re.search(r"\b(\d+) ?gb\b", words)
    size = int(said.group(1)) if said else math.ceil(memory_bytes / 2**30)
    words = re.sub(r"\b\d+ ?gb\b|\bhbm\d?e?\b", " ", words)
    # The SXM boards of Hopper carry no form factor in their name: 'NVIDIA H100 80GB HBM3', 'NVIDIA H200'.
    sxm = "hbm3" in name.lower() or re.fullmatch(r"\s*(h200|b200|b300)\s*", words)
    model = "-".join(words.split()) + ("-sxm" if sxm and "sxm" not in words else "")
    cut = "-mig-" + "-".join(mig.group(1).split()) if mig else ""
    return f"{model}-{size}gb{cut}"


@contextmanager
def _nvml() -> Iterator[Any]:
    import pynvml

    pynvml.nvmlInit()
    try:
        yield pynvml
    finally:
        pynvml.nvmlShutdown()


def hold() -> None:
    """Keep NVML open until this process ends; nothing where there is none.

    NVML counts its users and shuts down with the last (nvmlInit_v2): a session inside this one is only counted, where
    each would take 10 ms and more, and a second on a GPU without the persistence daemon.
    """
    with suppress(Exception):  # as in visible_gpus
        import pynvml

        pynvml.nvmlInit()


def _handles(nvml: Any) -> list[tuple[int, Any]]:
    """(NVML index, handle) of the visible GPUs, in the order of CUDA_VISIBLE_DEVICES."""
    everyone = [(i, nvml.nvmlDeviceGetHandleByIndex(i)) for i in range(nvml.nvmlDeviceGetCount())]
    wanted = os.environ.get("CUDA_VISIBLE_DEVICES")
    if wanted is None:
        return everyone
    chosen = []
    for entry in filter(None, (part.strip() for part in wanted.split(","))):
        hits = [h for h in everyone if entry == str(h[0]) or nvml.nvmlDeviceGetUUID(h[1]).startswith(entry)]
        if not hits:
            break  # CUDA stops at the first name that it does not know
        chosen.append(hits[0])
    return chosen


def visible_gpus() -> list[Gpu]:
    """The GPUs that CUDA would show, in its order; empty where there is no driver."""
    try:
        with _nvml() as nvml:
            return [_gpu(nvml, index, handle) for index, handle in _handles(nvml)]
    except Exception:  # a missing package, library or driver all mean the same here; why_no_gpu names it
        return []


def _gpu(nvml: Any, index: int, handle: Any) -> Gpu:
    major, minor = nvml.nvmlDeviceGetCudaComputeCapability(handle)
    memory = nvml.nvmlDeviceGetMemoryInfo(handle).total
    mig = _ask(lambda: nvml.nvmlDeviceGetMigMode(handle)[0] == 1)
    return Gpu(index, nvml.nvmlDeviceGetName(handle), memory, (major, minor), bool(mig))


def why_no_gpu() -> str:
    """Why `visible_gpus` is empty, in a few words."""
    try:
        with _nvml() as nvml:
            count = nvml.nvmlDeviceGetCount()
    except ImportError:
        return "the package nvidia-ml-py is not installed"
    except Exception as error:  # NVML's own error class exists only where NVML loads
        return str(error) or type(error).__name__
    return "CUDA_VISIBLE_DEVICES hides them" if count else "the driver shows none"


def no_gpu(to: str, instead: str = "") -> NoGpu:
    """What a command ends with that needs a GPU `to` do something; `instead` is what can be done without one."""
    return NoGpu(f"There is no NVIDIA GPU {to} ({why_no_gpu()}){f'; {instead}' if instead else ''}.")


def _ask(question: Any) -> Any:
    """The answer, or None where this board or driver does not know."""
    try:
        return question()
    except Exception:  # NVML refuses per board and per field; an absent fact is None in the record
        return None


def facts(gpu: Gpu) -> DeviceFacts:
    """What the Environment keeps of this GPU; the UUID only as a hash."""
    with _nvml() as nvml:
        handle = nvml.nvmlDeviceGetHandleByIndex(gpu.index)
        uuid = _ask(lambda: nvml.nvmlDeviceGetUUID(handle))
        milliwatts = _ask(lambda: nvml.nvmlDeviceGetEnforcedPowerLimit(handle))
        ecc = _ask(lambda: nvml.nvmlDeviceGetEccMode(handle)[0])
        return DeviceFacts(
            driver=_ask(nvml.nvmlSystemGetDriverVersion),
            vbios=_ask(lambda: nvml.nvmlDeviceGetVbiosVersion(handle)),
            power_limit_w=milliwatts / 1000 if milliwatts else None,
            ecc=None if ecc is None else bool(ecc),
            mig=gpu.mig,
            sm_clock_mhz=_ask(lambda: float(nvml.nvmlDeviceGetClockInfo(handle, nvml.NVML_CLOCK_SM))),
            memory_clock_mhz=_ask(lambda: float(nvml.nvmlDeviceGetClockInfo(handle, nvml.NVML_CLOCK_MEM))),
            uuid_sha256=uuid_sha256(uuid) if uuid else None,
        )


def uuid_sha256(uuid: str) -> str:
    """What a record says of a GPU's UUID, 'GPU-...'."""
    return hashlib.sha256(uuid.encode()).hexdigest()[:16]


def board(sha256: str) -> str:
    """The 8 digits of its UUID's hash by which a board is named."""
    return sha256[:8]


def max_clocks_hz(gpu: Gpu) -> tuple[float | None, float | None]:
    """(SM, memory) clocks that the driver admits at most."""
    with _nvml() as nvml:
        handle = nvml.nvmlDeviceGetHandleByIndex(gpu.index)
        sm = _ask(lambda: nvml.nvmlDeviceGetMaxClockInfo(handle, nvml.NVML_CLOCK_SM) * 1e6)
        memory = _ask(lambda: nvml.nvmlDeviceGetMaxClockInfo(handle, nvml.NVML_CLOCK_MEM) * 1e6)
        return sm, memory


@dataclass(frozen=True)
class State:
    """How a board is; None where it does not say."""

    ecc: bool | None = None
    ecc_uncorrected: int | None = None  # since the board was made
    rows_pending: bool | None = None  # a row of memory waits for a reset to be remapped
    rows_failed: bool | None = None
    link_width: int | None = None  # PCIe lanes
    link_width_most: int | None = None
    throttled: tuple[str, ...] = ()
    temperature_c: float | None = None
    power_w: float | None = None
    power_limit_w: float | None = None
    power_limit_usual_w: float | None = None


def state(gpu: Gpu) -> State:
    with _nvml() as nvml:
        handle = nvml.nvmlDeviceGetHandleByIndex(gpu.index)
        ecc = _ask(lambda: nvml.nvmlDeviceGetEccMode(handle)[0])
        rows = _ask(lambda: nvml.nvmlDeviceGetRemappedRows(handle))
        uncorrected, lifetime = nvml.NVML_MEMORY_ERROR_TYPE_UNCORRECTED, nvml.NVML_AGGREGATE_ECC

        def watts(question: Any) -> float | None:
            milliwatts = _ask(lambda: question(handle))
            return milliwatts / 1000 if milliwatts else None

        return State(
            ecc=None if ecc is None else bool(ecc),
            ecc_uncorrected=_ask(lambda: int(nvml.nvmlDeviceGetTotalEccErrors(handle, uncorrected, lifetime))),
            rows_pending=bool(rows[2]) if rows else None,
            rows_failed=bool(rows[3]) if rows else None,
            link_width=_ask(lambda: int(nvml.nvmlDeviceGetCurrPcieLinkWidth(handle))),
            link_width_most=_ask(lambda: int(nvml.nvmlDeviceGetMaxPcieLinkWidth(handle))),
            throttled=_throttled(nvml, handle),
            temperature_c=_temperature_c(nvml, handle),
            power_w=watts(nvml.nvmlDeviceGetPowerUsage),
            power_limit_w=watts(nvml.nvmlDeviceGetEnforcedPowerLimit),
            power_limit_usual_w=watts(nvml.nvmlDeviceGetPowerManagementDefaultLimit),
        )


def _throttled(nvml: Any, handle: Any) -> tuple[str, ...]:
    reasons = _ask(lambda: nvml.nvmlDeviceGetCurrentClocksEventReasons(handle)) or 0
    return tuple(name for bit, name in _THROTTLE.items() if reasons & bit)


def energy_joules(gpu: Gpu) -> float | None:
    """What this GPU has taken since its driver was loaded; None where it does not count (before Volta)."""
    with _nvml() as nvml:
        handle = nvml.nvmlDeviceGetHandleByIndex(gpu.index)
        millijoules = _ask(lambda: nvml.nvmlDeviceGetTotalEnergyConsumption(handle))
        return None if millijoules is None else millijoules / 1000


def power_w(gpu: Gpu) -> float | None:
    """What the board takes, by its driver's latest reading; None where it does not say."""
    with _nvml() as nvml:
        handle = nvml.nvmlDeviceGetHandleByIndex(gpu.index)
        milliwatts = _ask(lambda: nvml.nvmlDeviceGetPowerUsage(handle))
        return milliwatts / 1000 if milliwatts else None


def temperature_c(gpu: Gpu) -> float | None:
    """Of the chip; None where it does not say."""
    with _nvml() as nvml:
        handle = nvml.nvmlDeviceGetHandleByIndex(gpu.index)
        return _temperature_c(nvml, handle)


def _temperature_c(nvml: Any, handle: Any) -> float | None:
    celsius = _ask(lambda: nvml.nvmlDeviceGetTemperature(handle, nvml.NVML_TEMPERATURE_GPU))
    return None if celsius is None else float(celsius)


def trouble(gpu: Gpu, own_pid: int) -> tuple[str, ...]:
    """What disturbs a measurement at this moment: 'busy' (another compute process), 'throttled:<reason>'."""
    with _nvml() as nvml:
        handle = nvml.nvmlDeviceGetHandleByIndex(gpu.index)
        reasons = _throttled(nvml, handle)
        processes = _ask(lambda: nvml.nvmlDeviceGetComputeRunningProcesses(handle)) or []
    found = [f"throttled:{name}" for name in reasons]
    # In a container NVML shows the host's process numbers, and one's own cannot be told apart: more than one is busy.
    strangers = [process for process in processes if process.pid != own_pid]
    if len(strangers) > (0 if any(process.pid == own_pid for process in processes) else 1):
        found.append("busy")
    return tuple(found)
