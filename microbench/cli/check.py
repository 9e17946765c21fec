"""The verb `check`: what can be known of every kernel without a GPU, and whether the two methods of a profile agree."""

from dataclasses import asdict, dataclass
from typing import Annotated

import typer

from microbench import console, paths
from microbench.console import Archs, Folders, Json, Probes, Write
from microbench.console.progress import say
from microbench.errors import DataError, InputError
from microbench.machine import arch as archs
from microbench.probes import discover, named
from microbench.results.profile import Profile, judged
from microbench.verify import latencies as ptxas
from microbench.verify import matrix, show, tables

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


Compared = Annotated[str | None, typer.Argument(help="Compare both methods in this profile instead.")]
Latencies = Annotated[
    bool, typer.Option("--latencies", help="The stalls that ptxas schedules between dependent instructions instead.")
]


def check(
    gpu: Compared = None,
    arch: Archs = None,
    only: Probes = None,
    latencies: Latencies = False,
    write: Write = False,
    probes: Folders = None,
    json: Json = False,
) -> None:
    """Compile every probe for every architecture against its SASS contract; with GPU, compare its two methods."""
    if write and (gpu or arch or probes or (latencies and only)):
        raise InputError("A table covers all architectures; beside --write only --only may select.")
    if gpu is not None:
        profile = Profile.load(gpu)
        _sound(profile.gpu)
        _methods(profile, json)
    elif latencies:
        _latencies(write, json)
    else:
        wanted = tuple(archs.by_name(name).name for name in arch or ())
        folders = tuple(probes or ())
        chosen = [named(name, *folders) for name in only or ()] or discover(*folders)
        _matrix(matrix.jobs(chosen, wanted), write, bool(only), json)


def _matrix(todo: list[matrix.Job], write: bool, some: bool, json: bool) -> None:
    rows = show.watched(todo)
    show.say_all(rows, json)
    if write:
        show.say_written(tables.write_all(tables.BuildRow, matrix.table(rows, tables.BuildRow), every=not some))


def _latencies(write: bool, json: bool) -> None:
    rows = ptxas.golden()
    headings = ("instruction", "arch", "SASS", "cycles", "scoreboard", "NVRTC")
    lines = [(row.instruction, row.arch, row.opcode, row.cycles, row.scoreboard, row.nvrtc) for row in rows]
    drawn = console.table("What ptxas leaves between two dependent instructions", headings, lines)
    console.show(json, [row.model_dump() for row in rows], drawn)
    if write:
        say(f"Wrote {tables.write(tables.LatencyRow, rows).name}.")


def _methods(profile: Profile, json: bool) -> None:
    rows = agreements(profile)
    title = f"{profile.gpu}: {len(rows)} constants by two methods, which must agree within {AGREEMENT:.0%}"
    headings = ("constant", "unit", "first", "numba", "deviation", "agree")
    lines = [(r.constant, r.unit, r.first, r.second, f"{r.deviation:+.2%}", "yes" if r.agrees else "NO") for r in rows]
    nothing = (
        f"No constant of {profile.gpu} was measured by two methods: there is nothing to check; "
        "`smscope check` without a name compiles the probes instead."
    )
    console.show(json, [asdict(row) for row in rows], console.table(title, headings, lines) if rows else nothing)
    if not all(row.agrees for row in rows):
        raise typer.Exit(1)


def _sound(gpu: str) -> None:
    """Raises DataError with every field of a profile that a choice leaves out."""
    files = [root / "profiles" / f"{gpu}.json" for root in paths.data_roots()]
    faulty = [f"{file.name}: {fault}." for file in files if file.is_file() for fault in judged(file)[1]]
    if faulty:
        raise DataError("\n".join(faulty))


def agreements(profile: Profile) -> tuple[Agreement, ...]:
    found = []
    for second in profile.constants:
        name = second.name.removesuffix("_numba")
        if second.method != "numba" or name == second.name or name not in profile:
            continue
        first = profile[name]
        deviation = second.value / first.value - 1
        agrees = bool(abs(deviation) <= AGREEMENT)
        found.append(Agreement(name, first.unit, first.value, second.value, deviation, agrees))
    return tuple(found)
