"""The verb `check`: what can be known of every kernel without a GPU, and whether the two methods of a profile agree."""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from microbench import arch as archs
from microbench.build import cache
from microbench.errors import InputError
from microbench.probes import discover, named
from microbench.profile import Profile
from microbench.report import console
from microbench.report.console import Folders, Json
from microbench.report.progress import say, watching
from microbench.verification import latencies as ptxas
from microbench.verification import matrix, tables

AGREEMENT = 0.03  # probes.md 1.11: what a second method may differ by


@dataclass(frozen=True)
class Agreement:
    """A constant by both methods; `deviation` is the second over the first, less one."""

    constant: str
    unit: str
    first: float
    second: float
    deviation: float
    agrees: bool


def check(
    gpu: Annotated[str | None, typer.Argument(help="Compare both methods in this profile instead.")] = None,
    arch: Annotated[
        list[str] | None, typer.Option("--arch", help="sm70 ... sm120a; repeatable; all by default.")
    ] = None,
    only: Annotated[list[str] | None, typer.Option("--only", help="A probe's name; repeatable.")] = None,
    latencies: Annotated[
        bool,
        typer.Option("--latencies", help="The stalls that ptxas schedules between dependent instructions instead."),
    ] = False,
    write: Annotated[bool, typer.Option("--write", help="Write the table in data/verification again.")] = False,
    probes: Folders = None,
    json: Json = False,
) -> None:
    """Compile every probe for every architecture against its SASS contract; with GPU, compare its two methods."""
    if write and (gpu or arch or only or probes):
        raise InputError("A table of data/verification is of all probes and architectures; --write takes no choice.")
    if gpu is not None:
        _methods(Profile.load(gpu), json)
    elif latencies:
        _latencies(write, json)
    else:
        wanted = tuple(archs.by_name(name).name for name in arch or ())
        folders = tuple(probes or ())
        chosen = [named(name, *folders) for name in only or ()] or discover(*folders)
        _matrix(matrix.jobs(chosen, wanted), folders, write, json)


def _matrix(todo: list[matrix.Job], folders: tuple[Path, ...], write: bool, json: bool) -> None:
    cache.require_writable()
    rows = []
    with watching(len(todo)) as watcher:
        for row in matrix.run(todo, folders):
            watcher.doing(row.arch, row.probe)
            watcher.finished()
            rows.append(row)
    if json:
        console.emit([asdict(row) | {"ok": not row.problems} for row in rows])
    else:
        console.draw(_kernels(rows), *_broken(rows))
    if any(row.problems for row in rows):
        raise typer.Exit(1)
    if write:
        say(f"Wrote {tables.write(tables.BuildRow, matrix.table(rows)).name}.")


def _kernels(rows: list[matrix.Checked]) -> Table:
    """One line per probe and architecture: the largest of its builds, and what they took to compile."""
    seconds = defaultdict[tuple[str, str], float](float)
    absent = defaultdict[tuple[str, str], int](int)
    for row in rows:
        seconds[row.probe, row.arch] += row.compile_seconds or 0.0
        absent[row.probe, row.arch] += not row.compiled
    headings = ("probe", "arch", "kernels", "registers", "static smem B", "spill B", "compile s", "NVRTC", "contracts")
    lines = [
        (
            *(row.probe, row.arch, row.builds, row.registers_max, row.smem_bytes_max, row.spill_bytes_max),
            *(seconds[row.probe, row.arch], row.nvrtc),
            _standing(row.builds - row.kept, absent[row.probe, row.arch]),
        )
        for row in matrix.table(rows)
    ]
    return console.table(f"{len(rows)} kernels", headings, lines)


def _standing(failed: int, absent: int) -> str:
    parts = ((failed - absent, "broken"), (absent, "not compiled"))
    return ", ".join(f"{count} {what}" for count, what in parts if count) or "kept"


def _broken(rows: list[matrix.Checked]) -> Iterator[str]:
    """One line per broken contract, and one per reason why kernels did not compile."""
    absent = defaultdict[str, list[str]](list)
    for row in rows:
        if not row.compiled:
            absent[row.problems[0]].append(row.probe)
            continue
        yield from (f"{row.probe} {row.arch} {row.build}: {problem}" for problem in row.problems)
    for reason, probes in absent.items():
        yield f"not compiled, {len(probes)} of {len(rows)} kernels: {reason} ({', '.join(sorted(set(probes)))})"


def _latencies(write: bool, json: bool) -> None:
    rows = ptxas.golden()
    if json:
        console.emit([row.model_dump() for row in rows])
    else:
        headings = ("instruction", "arch", "SASS", "cycles", "scoreboard", "NVRTC")
        lines = [(row.instruction, row.arch, row.opcode, row.cycles, row.scoreboard, row.nvrtc) for row in rows]
        console.draw(console.table("What ptxas leaves between two dependent instructions", headings, lines))
    if write:
        say(f"Wrote {tables.write(tables.LatencyRow, rows).name}.")


def _methods(profile: Profile, json: bool) -> None:
    rows = agreements(profile)
    if json:
        console.emit([asdict(row) for row in rows])
    else:
        title = f"{profile.gpu}: {len(rows)} constants by two methods, which must agree within {AGREEMENT:.0%}"
        console.draw(
            console.table(
                title,
                ("constant", "unit", "first", "numba", "deviation", "agree"),
                [
                    (
                        row.constant,
                        row.unit,
                        row.first,
                        row.second,
                        f"{row.deviation:+.2%}",
                        "yes" if row.agrees else "NO",
                    )
                    for row in rows
                ],
            )
        )
    if not all(row.agrees for row in rows):
        raise typer.Exit(1)


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
