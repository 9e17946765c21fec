"""What this host has not, each a sentence that says what to do; '' where it is there."""

import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from attention.compare import candidates
from attention.errors import ADDS_TORCH
from microbench.emulator import toolchain
from microbench.errors import EnvironmentLacks
from microbench.verify.differential.number_formats import dtypes
from smscope.verified.record import Gap

# NVIDIA's page on ERR_NVGPUCTRPERM: since driver 418.43 only an administrator reads counters while this is 1.
DRIVER = Path("/proc/driver/nvidia/params")
ADMIN_ONLY = "RmProfilingAdminOnly: 1"


@dataclass(frozen=True)
class Host:
    """What is missing for each step."""

    cupy: str = ""
    torch: str = ""
    compiler: str = ""
    sanitizer: str = ""
    counters: str = ""
    peers: tuple[str, ...] = ()

    @property
    def nothing_runs(self) -> bool:
        return bool(self.cupy and self.torch)

    def gaps(self) -> Iterator[Gap]:
        """Each by the name under which people know it."""
        named = {
            "CuPy": self.cupy,
            "torch": self.torch,
            "C++ compiler": self.compiler and f"{self.compiler} The wrappers of PTX are left out.",
            "compute-sanitizer": self.sanitizer,
            "counters": self.counters,
        }
        yield from (Gap(name=name, why=why) for name, why in named.items() if why)
        yield from (Gap(name=name, why=f"{name} is not installed, so nothing is beside it.") for name in self.peers)


def host(gpu: str, sanitize: bool) -> Host:
    """Look at this host, on which `gpu` is to be verified, with compute-sanitizer where it is asked for."""
    no_torch = torch(gpu)
    return Host(
        cupy=cupy(gpu),
        torch=no_torch,
        compiler=compiler(),
        sanitizer=sanitizer(sanitize),
        counters=counters(),
        peers=candidates.missing(),
    )


def cupy(gpu: str) -> str:
    """For probes, wrappers and the doctor."""
    if find_spec("cupy") is not None:
        return ""
    return (
        f"CuPy is not installed, so no probe can be verified on {gpu}; `make bench` installs it, or `pip install "
        "cupy-cuda13x` (cupy-cuda12x for a driver of CUDA 12)."
    )


def torch(gpu: str) -> str:
    """For attention kernels and their peers."""
    if find_spec("torch") is not None:
        return ""
    return (
        f"Torch is not installed, so no attention kernel can be verified on {gpu}; {ADDS_TORCH}, or name probes with "
        "--only."
    )


def compiler() -> str:
    """For the emulator, which wrappers are held against."""
    try:
        toolchain.compiler()
        dtypes()
    except EnvironmentLacks as error:
        return str(error)
    return ""


def sanitizer(asked: bool) -> str:
    """For the few problems under memcheck and racecheck."""
    if shutil.which("compute-sanitizer") is None:
        return "compute-sanitizer was not found on the PATH; the CUDA toolkit brings it."
    return "" if asked else "It was not asked for; --sanitize adds a few problems under it."


def counters() -> str:
    """Of the hardware. No part reads them: a profiler would, of whatever the rest leaves open."""
    try:
        closed = ADMIN_ONLY in DRIVER.read_text("utf-8")
    except OSError:
        return f"{DRIVER} is not there, so whether they can be read is not known; no part needs them."
    if not closed or os.geteuid() == 0:
        return ""
    return "They are not readable: the driver lets only an administrator (RmProfilingAdminOnly); no part needs them."
