"""The two verbs that work for minutes: `run` measures, `check` compiles."""

from collections.abc import Iterator
from dataclasses import asdict
from typing import Annotated

import typer
from rich.console import RenderableType
from rich.table import Table

from microbench import arch as archs
from microbench import derive, device, report, runner
from microbench.cli import check as matrix
from microbench.probes import discover, named
from microbench.profile import Profile
from microbench.record import FULL_CAMPAIGNS, QUICK_CAMPAIGNS
from microbench.report import console
from microbench.report.console import Folders, Json
from microbench.report.progress import say, watching


def run(
    quick: Annotated[bool, typer.Option("--quick", help="Fewer points, and two campaigns.")] = False,
    only: Annotated[list[str] | None, typer.Option("--only", help="A probe's name; repeatable.")] = None,
    where: Annotated[str | None, typer.Option("--device", help="host, or cuda:N; the best there is.")] = None,
    fresh: Annotated[bool, typer.Option("--fresh", help="Do not go on with an interrupted run.")] = False,
    no_wait: Annotated[bool, typer.Option("--no-wait", help="Refuse where another run holds the device.")] = False,
    campaigns: Annotated[int | None, typer.Option(min=1, help="Fresh worker processes, 6 in a full run.")] = None,
    probes: Folders = None,
    json: Json = False,
) -> None:
    """Measure, write one run and the profile that follows from it, and print the results."""
    folders = tuple(probes or ())
    chosen = tuple(sorted({named(name, *folders).name for name in only or ()}))
    found = device.choose(where)
    say(f"Measuring {found.device}: {found.why}.")
    options = runner.Options(
        device=found.device,
        probes=discover(*folders),
        folders=folders,
        only=chosen,
        quick=quick,
        campaigns=campaigns or (QUICK_CAMPAIGNS if quick else FULL_CAMPAIGNS),
        fresh=fresh,
        wait=not no_wait,
    )
    try:
        outcome = runner.run(options)
    except KeyboardInterrupt:
        raise typer.Exit(130) from None
    mine = derive.reduce_runs([outcome.run], options.chosen)
    gpu = outcome.run.environment.gpu
    whole = derive.derive(gpu, options.probes)
    if whole.profile.constants:
        derive.write(whole.profile)
    if json:
        console.emit(_summary(outcome, mine, len(whole.profile.constants)))
    else:
        console.draw(*_results(outcome, mine))
    if not outcome.measured:
        say(f"Nothing could be measured on {gpu}; the reasons stand in {outcome.run.path.name}.")
        raise typer.Exit(1)


def _summary(outcome: runner.Outcome, mine: derive.Derived, constants: int) -> dict[str, object]:
    told = outcome.run.environment
    failed = [row.model_dump(mode="json", exclude_none=True) for row in outcome.run.records if row.status == "failed"]
    return {
        "gpu": told.gpu,
        "run": told.run_id,
        "quick": told.quick,
        "only": told.only,
        "campaigns": told.campaigns,
        "resumed_records": outcome.kept,
        "records": outcome.statuses,
        "failed": failed,
        "problems": (*outcome.run.problems, *mine.problems),
        "constants": constants,
    }


def _results(outcome: runner.Outcome, mine: derive.Derived) -> Iterator[RenderableType]:
    """The table of this run alone: the profile may stand on an older full run where this one was quick or partial."""
    told = outcome.run.environment
    drawn = report.table(mine.profile)
    drawn.title = f"{drawn.title}, {'quick run, only ' if told.quick else ''}{told.campaigns} campaigns"
    yield drawn
    yield from console.troubles(outcome.run.records)
    yield from (*outcome.run.problems, *mine.problems)
    counts = ", ".join(f"{count} {status}" for status, count in sorted(outcome.statuses.items()))
    yield f"{outcome.run.path.name}: {counts}."


def check(
    gpu: Annotated[str | None, typer.Argument(help="Compare both methods in this profile instead.")] = None,
    arch: Annotated[
        list[str] | None, typer.Option("--arch", help="sm70 ... sm120a; repeatable; all by default.")
    ] = None,
    only: Annotated[list[str] | None, typer.Option("--only", help="A probe's name; repeatable.")] = None,
    probes: Folders = None,
    json: Json = False,
) -> None:
    """Compile every probe for every architecture against its SASS contract; with GPU, compare its two methods."""
    if gpu is not None:
        _check_methods(Profile.load(gpu), json)
        return
    wanted = tuple(archs.by_name(name).name for name in arch or ())
    folders = tuple(probes or ())
    chosen = [named(name, *folders) for name in only or ()] or discover(*folders)
    todo = matrix.jobs(chosen, wanted)
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


def _kernels(rows: list[matrix.Checked]) -> Table:
    """One line per probe and architecture: the largest of its builds, and what they took to compile."""
    groups: dict[tuple[str, str], list[matrix.Checked]] = {}
    for row in rows:
        groups.setdefault((row.probe, row.arch), []).append(row)
    headings = ("probe", "arch", "kernels", "registers", "static smem B", "spill B", "compile s", "NVRTC", "contracts")
    lines = [
        (
            *(probe, arch, len(group)),
            *(max(value or 0 for value in column) for column in _resources(group)),
            sum(row.compile_seconds or 0.0 for row in group),
            " ".join(sorted({row.nvrtc for row in group if row.nvrtc})),
            f"{broken} broken" if (broken := sum(bool(row.problems) for row in group)) else "kept",
        )
        for (probe, arch), group in groups.items()
    ]
    return console.table(f"{len(rows)} kernels", headings, lines)


def _resources(group: list[matrix.Checked]) -> tuple[list[int | None], ...]:
    return [row.registers for row in group], [row.smem_bytes for row in group], [row.spill_bytes for row in group]


def _broken(rows: list[matrix.Checked]) -> Iterator[str]:
    for row in rows:
        yield from (f"{row.probe} {row.arch} {row.build}: {problem}" for problem in row.problems)


def _check_methods(profile: Profile, json: bool) -> None:
    rows = matrix.agreements(profile)
    if json:
        console.emit([asdict(row) for row in rows])
    else:
        title = f"{profile.gpu}: {len(rows)} constants by two methods, which must agree within {matrix.AGREEMENT:.0%}"
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
