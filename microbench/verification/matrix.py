"""Every probe, compiled for every architecture it declares, against its SASS contract. Needs NVRTC, and no GPU."""

import re
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from itertools import groupby
from multiprocessing import get_context
from pathlib import Path

from microbench import arch as archs
from microbench import sass
from microbench.arch import Arch, Machine
from microbench.build import Cubin, Source, compile_all, source_of
from microbench.device.cpu import cores
from microbench.errors import ContractError, SmscopeError
from microbench.probe import Build, Probe
from microbench.probes import discover
from microbench.runner.wire import sentence
from microbench.sass import cubin as images
from microbench.verification.tables import BuildRow

# Enough kernels for the start of nvdisasm not to matter, few enough for two processes to end together.
BATCH = 32
_NOTE = re.compile(r"\((C75\d\d)\)")


@dataclass(frozen=True)
class Job:
    """One kernel to compile: a probe's `index`-th distinct build on an architecture."""

    probe: str
    arch: str
    index: int


@dataclass(frozen=True)
class Checked:
    """One compiled kernel; `problems` is empty where it keeps its contract and its budget."""

    probe: str
    arch: str
    build: str  # its defines
    problems: tuple[str, ...]
    compiled: bool = True  # False: there is no cubin, the one problem says why, and its contract was not looked at
    registers: int = 0
    smem_bytes: int = 0  # static; dynamic shared memory is the launch's
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
    """Compile and check, architecture by architecture, in as many processes as there are cores."""
    batches = [
        tuple(of_arch[start : start + BATCH])
        for _, group in groupby(sorted(todo, key=lambda job: _place(job.arch)), key=lambda job: job.arch)
        for of_arch in [list(group)]
        for start in range(0, len(of_arch), BATCH)
    ]
    processes = min(len(cores()), len(batches))
    if processes < 2:
        for batch in batches:
            yield from check_batch(batch, folders)
        return
    with ProcessPoolExecutor(processes, mp_context=get_context("spawn")) as pool:
        for done in pool.map(check_batch, batches, [folders] * len(batches)):
            yield from done


def check_batch(batch: Sequence[Job], folders: Sequence[Path] = ()) -> tuple[Checked, ...]:
    """Compile some kernels together and check each; every failure is a problem of its kernel, none is raised."""
    probes = {probe.name: probe for probe in discover(*folders)}
    chosen: list[tuple[Checked, Build]] = []
    sources: list[Source | SmscopeError] = []
    for job in batch:
        probe, arch = probes[job.probe], archs.by_name(job.arch)
        build = builds(probe, arch)[job.index]
        name = " ".join(f"{key}={value}" for key, value in build.defines) or "-"
        chosen.append((Checked(job.probe, job.arch, name, ()), build))
        try:
            sources.append(source_of(probe, build, arch))
        except SmscopeError as error:
            sources.append(error)
    made = iter(compile_all([source for source in sources if isinstance(source, Source)]))
    cubins = [next(made) if isinstance(source, Source) else source for source in sources]
    return tuple(_checked(row, build, cubin) for (row, build), cubin in zip(chosen, cubins, strict=True))


def _checked(row: Checked, build: Build, cubin: Cubin | SmscopeError) -> Checked:
    if isinstance(cubin, SmscopeError):
        return replace(row, problems=(sentence(cubin),), compiled=False)
    try:
        instructions = cubin.instructions()
        problems = violations(build, cubin)
        length = max(at for at, instruction in enumerate(instructions, 1) if instruction.head != "NOP")
    except SmscopeError as error:
        return replace(row, problems=(sentence(error),))
    used = cubin.resources
    return replace(
        row,
        problems=problems,
        registers=used.registers,
        smem_bytes=used.smem_bytes,
        spill_bytes=used.spill_store_bytes + used.spill_load_bytes,
        instructions=length,
        signature=signature(build, cubin),
        notes=tuple(sorted(set(_NOTE.findall(cubin.log)))),
        compile_seconds=cubin.compile_seconds,
        nvrtc=cubin.nvrtc,
        flags=("other toolchain",) if cubin.other_toolchain else (),
    )


def violations(build: Build, cubin: Cubin) -> tuple[str, ...]:
    """Every way in which a cubin is not what its build declares: contract, budget, tensor instructions by software.

    A contract speaks of native instructions, so it is not asked of Volta's code on a newer target, where the build
    wants ptxas' routine; spills and the budget still are.
    """
    arch, used, budget = archs.by_name(cubin.arch), cubin.resources, build.budget
    software = [routine for routine in images.routines(cubin.image) if "mma" in routine]
    if software and build.software_mma:
        found = [f"ptxas spilled on {arch.name} ({used.registers} registers)"] if used.spills else []
    else:
        found = list(sass.check(build.contract, cubin.instructions(), arch, used))
    for have, most, what in (
        (used.registers, budget.registers, "registers a thread"),
        (used.smem_bytes, budget.smem_bytes, "bytes of static shared memory"),
    ):
        if most is not None and have > most:
            found.append(f"{have} {what} on {arch.name}, over the budget of {most}")
    if software and not build.software_mma:
        found.append(f"{arch.name} has no such tensor instruction: ptxas calls {', '.join(software)}")
    return tuple(found)


def signature(build: Build, cubin: Cubin) -> tuple[str, ...]:
    """The contract's operations as the disassembler spells them on this architecture, in the timed region."""
    try:
        region = sass.timed_region(build.contract, cubin.instructions())
    except ContractError:
        return ()
    ops = build.contract.ops
    return tuple(sorted({i.opcode for i in region if any(sass.matches(i, op.opcode) for op in ops)}))


def table(rows: Iterable[Checked]) -> tuple[BuildRow, ...]:
    """The rows of build_matrix.csv, by probe and then by architecture, oldest first."""
    ordered = sorted(rows, key=lambda row: (row.probe, _place(row.arch)))
    return tuple(_summed(list(group)) for _, group in groupby(ordered, key=lambda row: (row.probe, row.arch)))


def _summed(group: list[Checked]) -> BuildRow:
    return BuildRow(
        probe=group[0].probe,
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


def _place(arch: str) -> int:
    return archs.ARCHS.index(archs.by_name(arch))
