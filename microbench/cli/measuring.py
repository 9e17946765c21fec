"""The two verbs that work for minutes: `run` measures, `check` compiles."""

from collections.abc import Iterator
from typing import Annotated

import typer
from rich.console import RenderableType

from microbench import derive, device, report, runner
from microbench.probes import discover, named
from microbench.record import FULL_CAMPAIGNS, QUICK_CAMPAIGNS
from microbench.report import console
from microbench.report.console import Folders, Json
from microbench.report.progress import say


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
    if outcome.unsupported:
        if json:
            console.emit(_summary(outcome, mine, 0))
        else:
            console.draw(*console.troubles(outcome.run.records))
        say(f"Nothing of this can be measured on {gpu}, so no run was kept.")
        raise typer.Exit(1)
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
    unsupported = {row.probe: row.reason for row in outcome.run.records if row.status == "unsupported"}
    return {
        "gpu": told.gpu,
        "run": told.run_id,
        "quick": told.quick,
        "only": told.only,
        "campaigns": told.campaigns,
        "resumed_records": outcome.kept,
        "records": outcome.statuses,
        "failed": failed,
        "unsupported": unsupported,
        "problems": (*outcome.run.problems, *mine.problems),
        "constants": constants,
    }


def _results(outcome: runner.Outcome, mine: derive.Derived) -> Iterator[RenderableType]:
    """The table of this run alone: the profile may stand on an older full run where this one was quick or partial."""
    told = outcome.run.environment
    drawn = report.table(mine.profile)
    drawn.title = f"{drawn.title}, {'quick run, only ' if told.quick else ''}{told.campaigns} campaigns"
    if mine.profile.constants:
        yield drawn
    yield from console.troubles(outcome.run.records)
    yield from (*outcome.run.problems, *mine.problems)
    counts = ", ".join(f"{count} {status}" for status, count in sorted(outcome.statuses.items()))
    yield f"{outcome.run.path.name}: {counts}."
