"""The two verbs that work for minutes: `run` measures, `check` compiles."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Annotated

import typer
from rich.console import RenderableType

from microbench import console, device, paths, report
from microbench import run as runner
from microbench.cli.executing import execute_probes
from microbench.console import Folders, Json, Probes
from microbench.console.progress import say
from microbench.console.si import counted
from microbench.device.protocol import EMULATED
from microbench.machine import arch
from microbench.probe import Probe
from microbench.probes import discover, named
from microbench.report import ladder
from microbench.results import derive
from microbench.results.doubt import doubts, told
from microbench.results.record import FULL_CAMPAIGNS, QUICK_CAMPAIGNS, Record
from microbench.run import retry, spent

NUMBER = re.compile(r"\d[\d.]*(e[+-]\d+)?")


def run(
    quick: Annotated[bool, typer.Option("--quick", help="Fewer points, and two campaigns.")] = False,
    only: Probes = None,
    where: Annotated[
        str | None, typer.Option("--device", help="host, cuda:N or emulated:sm100a; else the best.")
    ] = None,
    fresh: Annotated[bool, typer.Option("--fresh", help="Start anew, not from an interrupted run.")] = False,
    no_wait: Annotated[
        bool, typer.Option("--no-wait", help="Fail, not wait, while another run has the device.")
    ] = False,
    campaigns: Annotated[int | None, typer.Option(min=1, help="How many fresh worker processes; 6 by default.")] = None,
    retries: Annotated[
        int, typer.Option(min=0, help="At most so many campaigns more, for what a busy machine left in doubt.")
    ] = retry.MOST,
    probes: Folders = None,
    json: Json = False,
) -> None:
    """Measure, write one run and the profile that follows from it, and print the results."""
    folders = tuple(probes or ())
    chosen = tuple(sorted({named(name, *folders).name for name in only or ()}))
    found = device.choose(where)
    if found.device.startswith(EMULATED):
        every = discover(*folders)
        execute_probes(found.device, tuple(p for p in every if not chosen or p.name in chosen), quick, json)
        return
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
        retries=retries,
    )
    options = replace(options, doubted=partial(retry.doubted, probes=options.chosen))
    try:
        outcome = runner.run(options)
    except KeyboardInterrupt:
        raise typer.Exit(130) from None
    mine = derive.reduce_runs([outcome.run], options.chosen)
    gpu = outcome.run.environment.gpu
    if outcome.unsupported:
        console.show(json, _summary(outcome, mine, mine, None), *troubles(outcome.run.records))
        say(f"None of these probes can be measured on {gpu}, so no run was kept.")
        raise typer.Exit(1)
    settled = derive.settled(outcome.run, options.chosen)
    board = outcome.run.environment.board or None
    whole = derive.Derived(settled, ()) if settled else derive.derive(gpu, options.probes, board)
    before = derive.stored(whole.profile)
    profile = derive.write(whole.profile) if whole.profile.constants else None
    if json:
        console.emit(_summary(outcome, mine, whole, profile))
    else:
        shown = _results(outcome, mine, options.chosen if chosen else ())
        console.draw(*shown, log_columns=console.BENCH_COLUMNS)
        console.draw(
            *_ending(outcome, whole, profile, before == derive.stored(whole.profile)), log_columns=console.BENCH_COLUMNS
        )
    if not outcome.measured:
        say(f"Nothing could be measured on {gpu}; the reasons are in {outcome.run.path.name}.")
        raise typer.Exit(1)


def _summary(
    outcome: runner.Outcome, mine: derive.Derived, whole: derive.Derived, profile: Path | None
) -> dict[str, object]:
    environment = outcome.run.environment
    failed = [row.model_dump(mode="json", exclude_none=True) for row in outcome.run.records if row.status == "failed"]
    unsupported = {_titled(row): row.reason for row in outcome.run.records if row.status == "unsupported"}
    return {
        "gpu": environment.gpu,
        "run": environment.run_id,
        "quick": environment.quick,
        "only": environment.only,
        "campaigns": environment.campaigns,
        "retried": outcome.retried,
        "resumed_records": outcome.kept,
        "records": outcome.statuses,
        "spent": outcome.run.spent.model_dump() if outcome.run.spent else None,
        "seconds": {name: round(seconds, 3) for name, seconds in spent.by_probe(outcome.run).items()},
        "failed": failed,
        "unsupported": unsupported,
        "problems": (*outcome.run.problems, *mine.problems),
        "constants": len(whole.profile.constants) if profile else 0,
        "doubtful": {doubt.constant: doubt.why for doubt in doubts(whole.profile)},
        "profile": str(profile) if profile else None,
    }


def _results(outcome: runner.Outcome, mine: derive.Derived, named: tuple[Probe, ...]) -> Iterator[RenderableType]:
    """The table of this run alone: the profile may stand on an older full run where this one was quick or partial.

    Probes of other machines (a GPU's on a CPU) are counted, and listed only where they were `named`.
    """
    environment = outcome.run.environment
    drawn = report.table(mine.profile)
    again = f" and {outcome.retried} more of what was in doubt" if outcome.retried else ""
    heading, drawn.title = str(drawn.title), None
    if mine.profile.constants:
        quick = "quick run, only " if environment.quick else ""
        yield from (heading, f"{quick}{environment.campaigns} campaigns{again}", drawn)
        yield from report.legend(mine.profile)
    here, wanted = arch.by_name(environment.arch), {probe.name for probe in named}
    elsewhere = {probe.name for probe in discover() if not probe.runs_on(here)} - wanted
    records = outcome.run.records
    yield from troubles(row for row in records if row.probe not in elsewhere)
    yield from (*outcome.run.problems, *mine.problems)


def _ending(
    outcome: runner.Outcome, whole: derive.Derived, profile: Path | None, unchanged: bool
) -> Iterator[RenderableType]:
    """What is in doubt of the profile, a picture of the machine, and where everything was written."""
    found = doubts(whole.profile)
    yield from told(found)
    if found:
        yield f"`{paths.typed('bench')}` on an idle machine measures it again. No pick uses it; to see all of it:"
        yield console.line(f"  {console.smscope()} show {whole.profile.gpu}")
    picture = ladder.chart(outcome.run.records, whole.profile)
    if picture is not None:
        yield from ("", f"The memory ladder of {whole.profile.name}: ns a load, by footprint", picture, "")
    counts = ", ".join(f"{count} {status}" for status, count in sorted(outcome.statuses.items()))
    yield f"Rows:    {counts}"
    if (line := spent.told(outcome.run)) is not None:
        yield line
    yield console.line(f"Run:     {console.near(outcome.run.path)}")
    if profile is not None:
        standing = " (unchanged: an earlier run has more)" if unchanged else ""
        yield console.line(f"Profile: {console.near(profile)}{standing}")


def troubles(records: Iterable[Record]) -> list[str]:
    """One sentence per reason why rows hold no value, with the probes it befell and how many rows it cost.

    Reasons that differ in their numbers alone are one, told with the numbers of the first.
    """
    alike: dict[tuple[str, str], list[Record]] = {}
    for row in records:
        if row.status in ("failed", "unsupported"):
            alike.setdefault((row.status, NUMBER.sub("", row.reason or "")), []).append(row)
    sentences = []
    for (status, _), rows in sorted(alike.items()):
        probes = ", ".join(sorted(set(map(_titled, rows))))
        first = "" if len({row.reason for row in rows}) == 1 else ", of which the first"
        sentences.append(f"{status}, {counted(len(rows), 'row')}{first}: {rows[0].reason}: {probes}")
    return sentences


def _titled(row: Record) -> str:
    """The probe, and its second method where that gave the row."""
    return row.probe if row.method != "numba" else f"{row.probe} (numba)"
