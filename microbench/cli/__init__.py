"""`python -m microbench run|doctor|list|show|check|compare|profile|report|export`: a verb, a screen; `--json` on each.

Exit codes are those of microbench/errors.py.
"""

import sys
from dataclasses import asdict
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import typer

from microbench import console, paths
from microbench.cli import check, doctor, exporting, measuring
from microbench.console import Folders, Json
from microbench.console.si import counted
from microbench.errors import DataError, EnvironmentLacks, InputError, SmscopeError
from microbench.probe import Probe
from microbench.probes import discover
from microbench.published import profiles as published
from microbench.results import derive
from microbench.results.doubt import doubts, told
from microbench.results.frame import load_runs
from microbench.results.profile import Profile, available
from microbench.results.record import run_files


def profiles(incomplete: str) -> list[str]:
    return [gpu for gpu in available() if gpu.startswith(incomplete)]


Gpu = Annotated[str, typer.Argument(help="The name of a profile, such as h100-sxm-80gb.", autocompletion=profiles)]


FIGURES = ("matplotlib", "seaborn")

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    help="Measure a GPU (or this CPU) down to its instructions.",
)

app.command()(measuring.run)
app.command()(check.check)
app.command()(doctor.doctor)
app.command()(exporting.export)


@app.command("list")
def list_probes(probes: Folders = None, json: Json = False) -> None:
    """List every probe and the question it asks."""
    found = discover(*(probes or ()))
    headings = ("probe", "family", "asks", "archs", "second method")
    rows = [(p.name, p.family, p.asks, " ".join(p.archs), "numba" if p.twin else "") for p in found]
    drawn = console.table(counted(len(rows), "probe"), headings, rows)
    console.show(json, [_about(probe) for probe in found], drawn)


def _about(probe: Probe) -> dict[str, object]:
    return {
        "probe": probe.name,
        "family": probe.family,
        "asks": probe.asks,
        "archs": list(probe.archs),
        "second_method": probe.twin is not None,
    }


@app.command()
def show(gpu: Gpu, json: Json = False) -> None:
    """Show the profile of one machine."""
    profile = Profile.load(gpu)
    if json:
        console.emit(profile.model_dump(mode="json"))
        return
    from microbench import report

    console.draw(report.table(profile), *report.legend(profile), *told(doubts(profile)))


@app.command()
def compare(
    gpu: Gpu,
    other: Annotated[str | None, typer.Argument(help="Another profile.")] = None,
    published: Annotated[bool, typer.Option("--published", help="Against the literature.")] = False,
    json: Json = False,
) -> None:
    """Compare one machine with the literature, or with another machine.

    Of another machine it says SAME, FASTER, SLOWER or AMBIGUOUS for each constant; exit code 1 where any is SLOWER.
    """
    profile = Profile.load(gpu)
    if (other is None) != published:
        raise InputError("Name what to compare with: either --published, or a second GPU.")
    if other is not None:
        _compare_with(profile, gpu, other, json)
        return
    from microbench.cli.compare import published_rows
    from microbench.published import verdict

    compared = verdict.compare(profile)
    columns = ("constant", "unit", "ours", "published", "rows", "best row", "verdict", "why")
    lines = published_rows(compared)
    drawn = console.table(f"{gpu} against the literature", columns, lines)
    nothing = f"No source publishes a constant of {profile.gpu}: there is nothing to compare; name a second profile."
    console.show(json, [asdict(row) for row in compared], drawn if lines else nothing)


def _compare_with(here: Profile, gpu: str, other: str, json: bool) -> None:
    from microbench.cli.compare import pair_rows, summary
    from microbench.health.standing import counts, pairs

    found = pairs(here, Profile.load(other))
    drawn = console.table(
        f"{other} against {gpu}",
        ("constant", "unit", gpu, other, "ratio", "SAME within", "better", ""),
        pair_rows(found),
    )
    value = {"counts": counts(found), "pairs": [asdict(pair) for pair in found]}
    console.show(json, value, drawn, summary(found, gpu, other))
    if counts(found).get("SLOWER"):
        raise typer.Exit(1)


@app.command()
def profile(
    gpu: Annotated[str | None, typer.Argument(help="One machine; all that have runs by default.")] = None,
    probes: Folders = None,
    json: Json = False,
) -> None:
    """Write profiles again from the runs, and the published ones from data/published, byte for byte."""
    found = discover(*(probes or ()))
    names = [gpu] if gpu else derive.gpus()
    derived = [derive.derive(name, found) for name in names if gpu or derive.ships(name)]
    derived += [derive.derive(name, found, board) for name in names for board in derive.boards(name)]
    for one in derived:
        if one.profile.constants:
            derive.write(one.profile)
    told = [(one.profile.stem, len(one.profile.constants), one.problems) for one in derived]
    others = () if gpu or probes else published.write(found)
    told += [(f"published/{one.profile.gpu}", len(one.profile.constants), one.refused) for one in others]
    value = [{"gpu": name, "constants": count, "problems": problems} for name, count, problems in told]
    lines = [line for name, count, why in told for line in (f"{name}: {count} constants.", *why)]
    none = f"There is no run here to make a profile from; `{paths.typed('bench')}` measures this machine."
    console.show(json, value, *(lines or [none]))


@app.command()
def report(
    gpu: Annotated[str | None, typer.Argument(help="One machine; all that have a profile by default.")] = None,
    output: Annotated[Path, typer.Option(help="The folder to write into, made where it is missing.")] = Path("reports"),
    json: Json = False,
) -> None:
    """Write a page of each machine, figures inside: one HTML file that can be mailed."""
    if missing := [each for each in FIGURES if find_spec(each) is None]:
        raise EnvironmentLacks(
            f"A report has figures, and of what draws them this Python lacks {' and '.join(missing)}: "
            f"`pip install {' '.join(missing)}`, or `make report` in a clone."
        )
    import pandas

    from microbench.report import figures, figures_machine, html

    figures.style()
    written, unread, made = [], [], console.made(output)
    for name in [gpu] if gpu else available():
        try:
            machine = Profile.load(name)
        except DataError as error:
            unread.append(str(error))
            continue
        runs = load_runs(machine.gpu) if run_files(machine.gpu) else pandas.DataFrame()
        pictures = figures_machine.pictures(machine, runs)
        page = html.write(machine, pictures, output)
        written.append({"gpu": machine.gpu, "page": str(page), "figures": len(pictures)})
    console.show(json, written, *(f"Wrote {one['page']}." for one in written), *(made if written else ()))
    if unread:
        print(*unread, sep="\n", file=sys.stderr)
        raise typer.Exit(1)


def main(arguments: list[str] | None = None) -> None:
    console.plainly()
    try:
        app(arguments, prog_name="python -m microbench")
    except SmscopeError as error:
        print(error, file=sys.stderr)
        sys.exit(error.exit_code)
