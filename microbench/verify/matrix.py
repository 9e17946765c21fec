"""Kernels compiled for every architecture they declare, each against its rules. Needs NVRTC, and no GPU.

`jobs` gives those of the probes; another package brings jobs of its own.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby

from microbench.compile import Cubin, Source, compile_all, source_of
from microbench.console.processes import beside
from microbench.errors import SmscopeError, sentence
from microbench.machine import arch as archs
from microbench.machine.arch import Arch, Machine
from microbench.machine.cpu import cores
from microbench.probe import Build, Probe
from microbench.verify.rules import Rules, Timed
from microbench.verify.tables import Summary

# At most so many kernels are compiled together: enough for the start of nvdisasm not to matter.
BATCH = 32


@dataclass(frozen=True)
class Job:
    """One kernel to compile: what it is called, its architecture, what tells this build from others, and its rules.

    `lacks` says why there is no source.
    """

    kernel: str
    arch: str
    build: str
    source: Source | None
    rules: Rules
    lacks: str = ""


@dataclass(frozen=True)
class Checked:
    """One compiled kernel; `problems` is empty where it keeps its rules."""

    kernel: str
    arch: str
    build: str
    problems: tuple[str, ...]
    compiled: bool = True  # False: there is no cubin, the one problem says why, and its rules were not looked at
    registers: int = 0
    smem_bytes: int = 0  # of a block: static, and dynamic where its rules know of it
    spill_bytes: int = 0
    instructions: int = 0
    signature: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    compile_seconds: float | None = None
    nvrtc: str | None = None
    flags: tuple[str, ...] = ()


def jobs(probes: Iterable[Probe], wanted: Sequence[str] = ()) -> list[Job]:
    """Every distinct build of every probe, on the wanted architectures (all that the probe declares by default)."""
    return [
        _job(probe, build, arch)
        for probe in probes
        if probe.builds is not None
        for arch in archs.ARCHS
        if arch.name in probe.archs and (not wanted or arch.name in wanted)
        for build in builds(probe, arch)
    ]


def _job(probe: Probe, build: Build, arch: Arch) -> Job:
    name = " ".join(f"{key}={value}" for key, value in build.defines) or "-"
    job = Job(probe.name, arch.name, name, None, Timed(build))
    try:
        return replace(job, source=source_of(probe, build, arch))
    except SmscopeError as error:
        return replace(job, lacks=sentence(error))


def builds(probe: Probe, arch: Arch) -> tuple[Build, ...]:
    """The distinct builds of a probe over all points that some GPU of this architecture can run."""
    if probe.builds is None:
        return ()
    roomy = Machine(arch.name, arch.generation, arch, 132, None, None, 1 << 40, 1 << 26)
    points = (point for point in probe.points() if not (probe.skip and probe.skip(roomy, point)))
    return tuple(dict.fromkeys(build for point in points for build in probe.builds(point)))


def run(todo: Sequence[Job]) -> Iterator[Checked]:
    """Compile and check, architecture by architecture, in as many processes as there are cores."""
    of_archs = [list(group) for _, group in groupby(sorted(todo, key=_arch_place), key=lambda job: job.arch)]
    # Four batches a process and more, so that processes end together.
    size = max(1, min(BATCH, len(todo) // (4 * len(cores()))))
    batches = [tuple(jobs[start : start + size]) for jobs in of_archs for start in range(0, len(jobs), size)]
    processes = min(len(cores()), len(batches))
    if processes < 2:
        for batch in batches:
            yield from check_batch(batch)
        return
    with beside(processes) as pool:
        for done in pool.map(check_batch, batches):
            yield from done


def check_batch(batch: Sequence[Job]) -> tuple[Checked, ...]:
    """Compile some kernels together and check each; every failure is a problem of its kernel, none is raised."""
    made = iter(compile_all([job.source for job in batch if job.source is not None]))
    return tuple(_checked(job, next(made) if job.source is not None else job.lacks) for job in batch)


def _checked(job: Job, cubin: Cubin | SmscopeError | str) -> Checked:
    row = Checked(job.kernel, job.arch, job.build, ())
    if not isinstance(cubin, Cubin):
        return replace(row, problems=(cubin if isinstance(cubin, str) else sentence(cubin),), compiled=False)
    try:
        instructions = cubin.instructions()
        problems = (*job.rules.broken(cubin), *_noted(cubin))
        length = max(at for at, instruction in enumerate(instructions, 1) if instruction.head != "NOP")
    except SmscopeError as error:
        return replace(row, problems=(sentence(error),))
    used = cubin.resources
    return replace(
        row,
        problems=problems,
        registers=used.registers,
        smem_bytes=used.smem_bytes + job.rules.launch_smem_bytes,
        spill_bytes=used.spill_store_bytes + used.spill_load_bytes,
        instructions=length,
        signature=job.rules.signature(cubin),
        notes=cubin.notes,
        compile_seconds=cubin.compile_seconds,
        nvrtc=cubin.nvrtc,
        flags=("other toolchain",) if cubin.other_toolchain else (),
    )


def _noted(cubin: Cubin) -> tuple[str, ...]:
    """Where nobody has run our kernels on the GPU, every note is a problem, until someone has understood it."""
    if "tcgen05" not in archs.by_name(cubin.arch).features:
        return ()
    return tuple(f"ptxas has a note for {cubin.arch}: {note}" for note in cubin.notes)


def table(rows: Iterable[Checked], kind: type[Summary]) -> tuple[Summary, ...]:
    """The rows of data/verification, by kernel and then by architecture, oldest first."""
    ordered = sorted(rows, key=lambda row: (_natural(row.kernel), _place(row.arch)))
    return tuple(_summed(list(group), kind) for _, group in groupby(ordered, key=lambda row: (row.kernel, row.arch)))


def _summed(group: list[Checked], kind: type[Summary]) -> Summary:
    return kind(
        kernel=group[0].kernel,
        arch=group[0].arch,
        builds=len(group),
        kept=sum(not row.problems for row in group),
        registers_min=min(row.registers for row in group),
        registers_max=max(row.registers for row in group),
        smem_bytes_max=max(row.smem_bytes for row in group),
        spill_bytes_max=max(row.spill_bytes for row in group),
        instructions_min=min(row.instructions for row in group),
        instructions_max=max(row.instructions for row in group),
        signature=" ".join(sorted({opcode for row in group for opcode in row.signature})),
        notes=" ".join(sorted({note for row in group for note in row.notes})),
        nvrtc=" ".join(sorted({row.nvrtc for row in group if row.nvrtc})),
    )


def _arch_place(job: Job) -> int:
    return _place(job.arch)


def _natural(name: str) -> tuple[str | int, ...]:
    """d=96 stands before d=128."""
    return tuple(int(part) if part.isdigit() else part for part in re.split(r"(\d+)", name))


def _place(arch: str) -> int:
    return archs.ARCHS.index(archs.by_name(arch))
