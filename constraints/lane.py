"""Which lane fits this machine: host, volta or cuda. Standard library only, since it runs before anything is installed.

The compute capability decides: a V100 on a new driver needs CUDA 12 wheels, because CUDA 13's hold no kernels for it.
The driver is asked only whether it can load CUDA 13 at all.
"""

import ctypes
import os
import shutil
import subprocess
from dataclasses import dataclass

OLDEST = (7, 0)  # the first tensor cores, and the oldest row of microbench/arch.py
OLDEST_CUDA13 = (7, 5)  # CUDA 13 release notes: support of Maxwell, Pascal and Volta ends with 12.x
WITHOUT_CUDA12 = ((10, 3), (12, 1))  # what the volta lane's NVRTC, 12.8, does not know; 12.9 does
CUDA13_DRIVER = 580  # CUDA 13 release notes: the first driver branch that loads CUDA 13.x
NVIDIA_SMI_SECONDS = 30  # without persistence mode a cold driver takes several seconds to answer


class NoLaneError(Exception):
    """This machine's GPU and driver do not go together; the message says what to do."""


@dataclass(frozen=True)
class Gpu:
    """One GPU as the driver describes it; `cuda13` is whether the driver loads CUDA 13."""

    name: str
    compute_capability: tuple[int, int]
    cuda13: bool


@dataclass(frozen=True)
class Choice:
    """The lane, and what was found that decided it."""

    lane: str
    why: str


def find_gpus() -> list[Gpu]:
    """Every NVIDIA GPU of this machine, whatever CUDA_VISIBLE_DEVICES hides. Empty where there is none."""
    return _from_nvidia_smi() or _from_libcuda()


def choose(gpus: list[Gpu]) -> Choice:
    """The lane that serves these GPUs. Raises NoLaneError where their driver is too old for every lane."""
    if not gpus:
        return Choice("host", "found no NVIDIA GPU (neither nvidia-smi nor libcuda names one)")
    usable = [gpu for gpu in gpus if gpu.compute_capability >= OLDEST]
    if not usable:
        return Choice("host", f"found {_describe(gpus[0])}, older than 7.0, the oldest that smscope measures")
    oldest = min(usable, key=lambda gpu: gpu.compute_capability)
    found = f"found {_count(usable)}{_describe(oldest)}"
    if oldest.compute_capability < OLDEST_CUDA13:
        return Choice("volta", f"{found}, which CUDA 13 wheels no longer hold kernels for")
    if oldest.cuda13:
        return Choice("cuda", found)
    unserved = [gpu for gpu in usable if gpu.compute_capability in WITHOUT_CUDA12]
    if unserved:
        raise NoLaneError(
            f"Found {_describe(unserved[0])} on a driver older than {CUDA13_DRIVER}, which cannot load CUDA 13; "
            f"update the driver, or measure the CPU with LANE=host."
        )
    return Choice("volta", f"{found} on a driver older than {CUDA13_DRIVER}, which cannot load CUDA 13")


def hardware() -> list[str]:
    """What tells a changed machine at no cost, so that a ready .venv need not wake the driver."""
    folder = "/proc/driver/nvidia/gpus"
    listed = sorted(os.listdir(folder)) if os.path.isdir(folder) else []
    devices = [path for path in ("/dev/nvidiactl", "/dev/dxg") if os.path.exists(path)]
    return [*listed, *devices, shutil.which("nvidia-smi") or ""]


def _describe(gpu: Gpu) -> str:
    major, minor = gpu.compute_capability
    return f"{gpu.name} (compute capability {major}.{minor})"


def _count(gpus: list[Gpu]) -> str:
    return f"{len(gpus)} GPUs, the oldest " if len(gpus) > 1 else ""


def _from_nvidia_smi() -> list[Gpu]:
    program = shutil.which("nvidia-smi")
    if program is None:
        return []
    query = [program, "--query-gpu=name,compute_cap,driver_version", "--format=csv,noheader"]
    try:
        answer = subprocess.run(query, capture_output=True, text=True, timeout=NVIDIA_SMI_SECONDS, check=True).stdout
        return [_parse(line) for line in answer.splitlines() if line.strip()]
    except (OSError, subprocess.SubprocessError, ValueError):
        return []  # a driver older than compute_cap's field, or none loaded: libcuda may still answer


def _parse(line: str) -> Gpu:
    name, capability, driver = (field.strip() for field in line.rsplit(",", 2))
    major, minor = (int(part) for part in capability.split("."))
    return Gpu(name, (major, minor), int(driver.split(".")[0]) >= CUDA13_DRIVER)


def _from_libcuda() -> list[Gpu]:
    hidden = os.environ.pop("CUDA_VISIBLE_DEVICES", None)
    try:
        return _ask_driver(ctypes.CDLL("libcuda.so.1"))
    except OSError:
        return []
    finally:
        if hidden is not None:
            os.environ["CUDA_VISIBLE_DEVICES"] = hidden


def _ask_driver(cuda: ctypes.CDLL) -> list[Gpu]:
    count, version = ctypes.c_int(), ctypes.c_int()
    if cuda.cuInit(0) or cuda.cuDeviceGetCount(ctypes.byref(count)) or cuda.cuDriverGetVersion(ctypes.byref(version)):
        return []
    gpus = []
    for index in range(count.value):
        device, name, major, minor = ctypes.c_int(), ctypes.create_string_buffer(128), ctypes.c_int(), ctypes.c_int()
        cuda.cuDeviceGet(ctypes.byref(device), index)
        cuda.cuDeviceGetName(name, len(name), device)
        # CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR and _MINOR are 75 and 76 in cuda.h.
        cuda.cuDeviceGetAttribute(ctypes.byref(major), 75, device)
        cuda.cuDeviceGetAttribute(ctypes.byref(minor), 76, device)
        gpus.append(Gpu(name.value.decode(), (major.value, minor.value), version.value >= 13000))
    return gpus
