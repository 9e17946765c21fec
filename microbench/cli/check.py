"""Every probe, compiled for every architecture it declares, against its SASS contract. Needs NVRTC, and no GPU."""

from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path

from microbench import arch as archs
from microbench.arch import Arch, Machine
from microbench.build import compile_probe
from microbench.errors import SmscopeError
from microbench.probe import Build, Probe
from microbench.probes import discover
from microbench.profile import Profile
from microbench.runner.wire import sentence
from microbench.sass.contracts import check

# NVRTC compiles in one thread; more processes than this would starve whatever else the machine does.
PROCESSES = 2
AGREEMENT = 0.03  # probes.md 1.11: what a second method may differ by


@dataclass(frozen=True)
class Job:
    """One kernel to compile: a probe's `index`-th distinct build on an architecture."""

    probe: str
    arch: str
    index: int


@dataclass(frozen=True)
class Checked:
    """One compiled kernel; `problems` is empty where it keeps its contract."""

    probe: str
    arch: str
    build: str  # its defines
    problems: tuple[str, ...]
    registers: int | None = None
    smem_bytes: int | None = None  # static; dynamic shared memory is the launch's
    spill_bytes: int | None = None
    compile_seconds: float | None = None
    nvrtc: str | None = None
    flags: tuple[str, ...] = ()


@dataclass(frozen=True)
class Agreement:
    """A constant by both methods; `deviation` is the second over the first, less one."""

    constant: str
    unit: str
    first: float
    second: float
    deviation: float
    agrees: bool


def jobs(probes: Iterable[Probe], wanted: Sequence[str] = ()) -> list[Job]:
    """Every distinct build of every probe, on the wanted architectures (all that the probe declares by default)."""
    return [
        Job(probe.name, arch.name, index)
        for probe in probes
        if probe.builds is not None
        for arch in archs.ARCHS
        if arch.name in probe.archs and (not wanted or arch.name in wanted)
        for index in range(len(builds(probe, arch)))
    ]


def builds(probe: Probe, arch: Arch) -> tuple[Build, ...]:
    """The distinct builds of a probe over all points that some GPU of this architecture can run."""
    if probe.builds is None:
        return ()
    roomy = Machine(arch.name, arch.generation, arch, 132, None, None, 1 << 40, 1 << 26)
    points = (point for point in probe.points() if not (probe.skip and probe.skip(roomy, point)))
    return tuple(dict.fromkeys(build for point in points for build in probe.builds(point)))


def run(todo: Sequence[Job], folders: Sequence[Path] = ()) -> Iterator[Checked]:
    """Compile and check, in two processes; results in the order of `todo`."""
    if len(todo) <= PROCESSES:
        yield from (check_one(job, folders) for job in todo)
        return
    with ProcessPoolExecutor(PROCESSES, mp_context=get_context("spawn")) as pool:
        yield from pool.map(check_one, todo, [folders] * len(todo))


def check_one(job: Job, folders: Sequence[Path] = ()) -> Checked:
    """Compile one kernel and hold it against its contract; every failure is a problem, none is raised."""
    arch = archs.by_name(job.arch)
    probe = next(probe for probe in discover(*folders) if probe.name == job.probe)
    build = builds(probe, arch)[job.index]
    name = " ".join(f"{key}={value}" for key, value in build.defines) or "-"
    try:
        cubin = compile_probe(probe, build, arch)
        problems = check(build.contract, cubin.instructions(), arch, cubin.resources)
    except SmscopeError as error:
        return Checked(probe.name, arch.name, name, (sentence(error),))
    return Checked(
        probe.name,
        arch.name,
        name,
        tuple(problems),
        cubin.resources.registers,
        cubin.resources.smem_bytes,
        cubin.resources.spill_store_bytes + cubin.resources.spill_load_bytes,
        cubin.compile_seconds,
        cubin.nvrtc,
        ("other toolchain",) if cubin.other_toolchain else (),
    )


def agreements(profile: Profile) -> tuple[Agreement, ...]:
    """Every constant that the profile holds by both methods."""
    found = []
    for second in profile.constants:
        name = second.name.removesuffix("_numba")
        if second.method != "numba" or name == second.name or name not in profile:
            continue
        first = profile[name]
        deviation = second.value / first.value - 1
        found.append(
            Agreement(name, first.unit, first.value, second.value, deviation, bool(abs(deviation) <= AGREEMENT))
        )
    return tuple(found)
