"""What the operating system says of this CPU: name, cores this process may use, caches, clock, memory.

Reads files only, and imports neither Numba nor LLVM, so that a supervisor may call it. What the system does not say is
None: a virtual machine often hides the clock, and may show caches that it shares with others.
"""

import os
import platform
import re
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

import psutil

from microbench.machine.arch import KIB, Machine, by_name

# The instruction sets that decide how many f32 lanes one register has.
SIMD_FLAGS = frozenset({"avx512f", "avx2", "fma", "sve", "asimd"})
# The fastest clock that any CPU was sold with (Core i9-14900KS, 6.2 GHz): a bound where the own clock is hidden.
FASTEST_CLOCK_HZ = 6.2e9

SYS_CPU = Path("/sys/devices/system/cpu")
CGROUP = Path("/sys/fs/cgroup")


@dataclass(frozen=True)
class Caches:
    """Data-cache capacities in bytes, as one core sees them; None where the system does not say."""

    l1_bytes: int | None = None
    l2_bytes: int | None = None
    l3_bytes: int | None = None
    line_bytes: int = 64

    @property
    def last_bytes(self) -> int | None:
        return self.l3_bytes or self.l2_bytes


def cores() -> tuple[int, ...]:
    """The logical CPUs that this process may use: its affinity, cut to the cgroup's quota where that is smaller."""
    if hasattr(os, "sched_getaffinity"):
        allowed = tuple(sorted(os.sched_getaffinity(0)))
    else:
        allowed = tuple(range(os.cpu_count() or 1))
    quota = _cpu_quota()
    # Rounded down: one thread more than the quota pays for would be stopped for a part of every period.
    return allowed if quota is None else allowed[: max(1, int(quota))]


def _cpu_quota() -> float | None:
    """CPUs' worth of time that the cgroup (v2, then v1) grants; None for no limit."""
    v2 = _text(CGROUP / "cpu.max").split()
    v1 = [_text(CGROUP / "cpu" / f"cpu.cfs_{part}_us") for part in ("quota", "period")]
    for pair in (v2, v1):
        if len(pair) == 2 and all(part.isdecimal() for part in pair) and int(pair[1]):
            return int(pair[0]) / int(pair[1])
    return None


def memory_bytes() -> int:
    """Physical memory, or the cgroup's limit where that is smaller."""
    limits = [_text(CGROUP / name) for name in ("memory.max", "memory/memory.limit_in_bytes")]
    return min([int(psutil.virtual_memory().total), *(int(limit) for limit in limits if limit.isdecimal())])


@cache
def caches() -> Caches:
    if platform.system() == "Darwin":
        l1, l2, line = (_sysctl(f"hw.{name}") for name in ("l1dcachesize", "l2cachesize", "cachelinesize"))
        return Caches(l1, l2, _sysctl("hw.l3cachesize"), line or 64)
    sizes: dict[str, int] = {}
    line_bytes = 64
    for index in sorted((SYS_CPU / f"cpu{cores()[0]}" / "cache").glob("index*")):
        if _text(index / "type") not in ("Data", "Unified"):
            continue
        size = re.fullmatch(r"(\d+)([KM]?)", _text(index / "size"))
        if size:
            sizes[_text(index / "level")] = int(size.group(1)) * {"": 1, "K": KIB, "M": KIB * KIB}[size.group(2)]
        line_bytes = int(_text(index / "coherency_line_size") or line_bytes)
    return Caches(sizes.get("1"), sizes.get("2"), sizes.get("3"), line_bytes)


@cache
def name() -> str:
    """The model as the vendor prints it: 'AMD EPYC 9R14'; with family and model where a hypervisor cuts it short."""
    said = _cpuinfo("model name") or (_sysctl_text("machdep.cpu.brand_string") if platform.system() == "Darwin" else "")
    said = said or _cpuinfo("Model") or platform.processor() or platform.machine() or "CPU"
    family, model = _cpuinfo("cpu family"), _cpuinfo("model")
    if not re.search(r"\d", said) and family and model:
        return f"{said} family {family} model {model}"
    return said


def host_slug() -> str:
    """The name of this CPU's runs and profile: its model and its usable logical cores, 'host-amd-epyc-9r14-8c'."""
    return slug(name(), len(cores()))


def stand_ins(slugs: Iterable[str]) -> list[str]:
    """The slugs that the name 'host' may mean: this CPU's own first, then every CPU among `slugs`."""
    return [host_slug(), *(slug for slug in slugs if slug.startswith("host-"))]


def slug(model: str, core_count: int) -> str:
    """A CPU's name as a file name: letters, digits, dot and dash."""
    words = re.sub(r"\((r|tm)\)|@.*$|\b\d+-core\b|\b(cpu|processor)\b", " ", model.lower())
    words = re.sub(r"\bfamily (\w+) model (\w+)", r"f\1m\2", words)
    words = re.sub(r"[^a-z0-9.]+", "-", words).strip("-.") or "cpu"
    return f"host-{words}-{core_count}c"


def clock_hz() -> float | None:
    """The highest clock that the system admits; None where a hypervisor hides it (/proc/cpuinfo shows the TSC's)."""
    said = _text(SYS_CPU / f"cpu{cores()[0]}" / "cpufreq" / "cpuinfo_max_freq")
    return int(said) * 1e3 if said.isdecimal() else None


def machine() -> Machine:
    """This CPU as a Machine: `sm_count` counts logical cores; the row's features name its SIMD instruction sets."""
    host = by_name("host")
    return Machine(
        gpu=host_slug(),
        name=name(),
        arch=replace(host, features=host.features | (_flags() & SIMD_FLAGS)),
        sm_count=len(cores()),
        clock_hz=clock_hz(),
        dram_bytes_per_s=None,
        dram_bytes=memory_bytes(),
        l2_bytes=caches().l2_bytes,
    )


def fma_lanes(machine: Machine) -> int:
    """f32 multiply-adds per core and clock at most.

    x86: two FMA pipes of 4, 8 (AVX2) or 16 (AVX-512) lanes, on every core from Haswell to Zen 5 (vendors' optimisation
    manuals). 64-bit Arm: four pipes of 4 lanes (Apple M, Neoverse V); two of 16 with the widest SVE (A64FX).
    A machine whose instruction sets nobody names gets the widest.
    """
    features = machine.arch.features
    if "avx512f" in features or "sve" in features:
        return 32
    return 16 if features & {"avx2", "fma", "asimd"} else 32


def fastest_hz(machine: Machine) -> float:
    """The clock that no core of this machine exceeds."""
    return machine.clock_hz or FASTEST_CLOCK_HZ


def _text(file: Path) -> str:
    try:
        return file.read_text().strip()
    except OSError:
        return ""


@cache
def _first_core() -> dict[str, str]:
    block = _text(Path("/proc/cpuinfo")).split("\n\n")[0]
    pairs = (line.partition(":") for line in block.splitlines())
    return {key.strip(): value.strip() for key, _, value in pairs}


def _cpuinfo(key: str) -> str:
    return _first_core().get(key, "")


def _flags() -> frozenset[str]:
    if platform.system() == "Darwin" and platform.machine() == "arm64":
        return frozenset({"asimd"})
    return frozenset((_cpuinfo("flags") or _cpuinfo("Features")).split())


def _sysctl_text(key: str) -> str:
    try:
        return subprocess.run(["sysctl", "-n", key], capture_output=True, text=True, check=False).stdout.strip()
    except OSError:
        return ""


def _sysctl(key: str) -> int | None:
    said = _sysctl_text(key)
    return int(said) if said.isdecimal() and int(said) else None
