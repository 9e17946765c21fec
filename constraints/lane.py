"""Print which lane fits this machine (host, volta or cuda), and why on stderr. Needs no package: none is installed yet.

The compute capability decides: a V100 on a new driver needs CUDA 12 wheels, because CUDA 13's hold no kernels for it.
The driver is asked only whether it can load CUDA 13 at all.
"""

import ctypes
import os
import subprocess
import sys
from typing import NamedTuple

OLDEST = (7, 0)  # the first tensor cores, and the oldest row of microbench/machine/arch.py
OLDEST_CUDA13 = (7, 5)  # CUDA 13 release notes: support of Maxwell, Pascal and Volta ends with 12.x
WITHOUT_CUDA12 = ((10, 3), (12, 1))  # what the volta lane's NVRTC, 12.8, does not know; 12.9 does
CUDA13_DRIVER = 580  # CUDA 13 release notes: the first driver branch that loads CUDA 13.x
NVIDIA_SMI_SECONDS = 30  # without persistence mode a cold driver takes several seconds to answer


class NoLaneError(Exception):
    """This machine's GPU and driver do not go together; the message says what to do."""


class Gpu(NamedTuple):
    """One GPU as the driver describes it; `cuda13` is whether the driver loads CUDA 13."""

    name: str
    compute_capability: tuple[int, int]
    cuda13: bool

    def __str__(self) -> str:
        return "{} (compute capability {}.{})".format(self.name, *self.compute_capability)


def choose(gpus: list[Gpu]) -> tuple[str, str]:
    """The lane that serves these GPUs, and why. Raises NoLaneError where their driver is too old for every lane."""
    if not gpus:
        return "host", "found no NVIDIA GPU (neither nvidia-smi nor libcuda names one)"
    usable = [gpu for gpu in gpus if gpu.compute_capability >= OLDEST]
    if not usable:
        return "host", f"found {gpus[0]}, older than 7.0, the oldest that smscope measures"
    oldest = min(usable, key=lambda gpu: gpu.compute_capability)
    found = f"found {f'{len(usable)} GPUs, the oldest ' if len(usable) > 1 else ''}{oldest}"
    if oldest.compute_capability < OLDEST_CUDA13:
        return "volta", f"{found}, which CUDA 13 wheels no longer hold kernels for"
    if oldest.cuda13:
        return "cuda", found
    for gpu in usable:
        if gpu.compute_capability in WITHOUT_CUDA12:
            raise NoLaneError(
                f"found {gpu} on a driver older than {CUDA13_DRIVER}, which cannot load CUDA 13; "
                f"update the driver, or measure the CPU with LANE=host."
            )
    return "volta", f"{found} on a driver older than {CUDA13_DRIVER}, which cannot load CUDA 13"


def from_nvidia_smi() -> list[Gpu]:
    """Every GPU that nvidia-smi lists; none where it fails: its driver is older than the field, or not loaded."""
    query = ["nvidia-smi", "--query-gpu=name,compute_cap,driver_version", "--format=csv,noheader"]
    gpus = []
    try:
        answer = subprocess.run(query, capture_output=True, text=True, timeout=NVIDIA_SMI_SECONDS, check=True).stdout
        for line in filter(None, answer.splitlines()):
            name, capability, driver = line.rsplit(", ", 2)
            major, minor = capability.split(".")
            gpus.append(Gpu(name, (int(major), int(minor)), int(driver.split(".")[0]) >= CUDA13_DRIVER))
    except (OSError, subprocess.SubprocessError, ValueError):
        return []
    return gpus


def from_libcuda() -> list[Gpu]:
    """Every GPU that the driver itself names, whatever CUDA_VISIBLE_DEVICES hides."""
    os.environ.pop("CUDA_VISIBLE_DEVICES", None)
    try:
        cuda = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return []
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


if __name__ == "__main__":
    try:
        lane, why = choose(from_nvidia_smi() or from_libcuda())
    except NoLaneError as error:
        print(f"smscope: {error}", file=sys.stderr)
        sys.exit(2)
    print(f"smscope: {why} -> lane {lane}.", file=sys.stderr)
    print(lane)
