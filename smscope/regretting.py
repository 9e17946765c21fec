"""The verb `regret`: what the model's choices cost by the campaigns on file, beside every other way to choose."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from attention.campaign import freeze, plan, rows
from attention.campaign.freeze import Freeze, Verdict
from attention.campaign.regret import Judged, Regrets, choices, judged
from attention.campaign.rows import Set
from attention.campaign.table import MEASURED, Line, Other, Table, table
from attention.choose import constants
from microbench import console, paths
from microbench.console import Json
from microbench.console.progress import say
from microbench.console.si import counted
from microbench.errors import InputError
from microbench.machine import stamp
from microbench.probes import discover
from microbench.published import load
from microbench.published.facts import Kind
from microbench.published.kinds import of_kind
from microbench.published.profiles import derive
from microbench.results.profile import Profile, available

# A kind that was measured here has no published profile on file: its constants by others are derived as those of kinds
# that were not. No document on file rates wgmma on an H200: what it lacks is the H100's, whose SMs it has.
H100 = Kind("h100", ("H100 SXM5 80GB", "H100 (variant n/s)"), ("GPUSPECS",))
SHEETS = {"h100-sxm-80gb": (H100,), "h200-sxm-141gb": (H100, Kind("h200", ("H200 SXM",), ("GPUSPECS",)))}


def regret(
    gpu: Annotated[str, typer.Argument(help="A profile's name: h200-sxm-141gb.")],
    which: Annotated[str, typer.Option("--set", help="The set that is judged: a or b.")] = "a",
    of_freeze: Annotated[
        str | None,
        typer.Option("--of", help="With --set b: the freeze, by its commit; by default the last one timed twice."),
    ] = None,
    brief: Annotated[bool, typer.Option("--brief", help="Without each constant halved and doubled.")] = False,
    write: Annotated[bool, typer.Option("--write", help="With --set b: put the verdict on file.")] = False,
    json: Json = False,
) -> None:
    """Judge the model by two campaigns on file: mean and worst regret of its picks, beside other ways to choose.

    A regret is how much longer a pick takes than the fastest configuration, by the mean of both campaigns. The floor is
    the regret of the first campaign's fastest in the second; of set a the last one will do where the other is of other
    kernels, and there is no floor. A table of all our kernels, and one of each that was timed, among its own
    configurations. No GPU is needed. Exit code 1 where a limit of the model is broken.
    """
    if which not in ("a", "b"):
        raise InputError(f"There is no set {which!r}; use a or b.")
    if which == "a" and (write or of_freeze):
        raise InputError("A freeze and a verdict are of set b; pass --set b with --of and --write.")
    frozen = _frozen(gpu, of_freeze) if which == "b" else None
    found, numbers = tables(gpu, frozen, brief and not write)
    if frozen is not None and not write:
        _say_what_changed(frozen)
    if json:
        console.emit([_told(each) for each in found])
    else:
        console.draw(*(_drawn(each, len(numbers)) for each in found))
        for each in found:
            for fault in each.faults:
                say(f"{each.kernels or 'all kernels'}: {fault}.")
    if write and frozen is not None:
        say(f"Wrote {console.near(_write(frozen, numbers, found))}.")
    if any(each.faults for each in found):
        raise typer.Exit(1)


def tables(gpu: str, frozen: Freeze | None, brief: bool = False) -> tuple[list[Table], tuple[int, ...]]:
    """The tables of set A, or of the set B of a freeze, and the campaigns' numbers.

    Of all kernels, of those of each architecture, then of each. Of a kernel that no problem leaves a choice, as one
    that is younger than the campaigns, there is none.
    """
    profile = Profile.load(gpu)
    typed, of_typed = campaigns(gpu, "a", None)
    problems, numbers = campaigns(gpu, "b", frozen) if frozen else (typed, of_typed)
    others = tuple(other_constants(profile))
    paths_of = [each.path for each in plan.variants(profile.arch)]
    archs = dict.fromkeys(path.partition("/")[0] for path in paths_of)
    asked = ["", *(each for each in (*archs, *paths_of) if choices(problems, each))]
    found = [table(profile, problems, typed, others, kernels=each, each_constant=not brief) for each in asked]
    return found, numbers


def campaigns(gpu: str, which: Set, frozen: Freeze | None) -> tuple[tuple[Judged, ...], tuple[int, ...]]:
    """The problems of the last two campaigns of the same kernels, and their numbers. Raises InputError without two.

    Of set B the campaigns of one freeze alone. Of set A the last one will do where the other is of other kernels.
    """
    commit = frozen.commit if frozen else None
    every = {number: _of(gpu, which, number, commit) for number in rows.campaigns(gpu, which)}
    last = [number for number, found in every.items() if found][-2:]
    if len(last) < 2:
        raise InputError(
            f"A judgement needs two campaigns of set {which} on {gpu}, and {len(last)} are on file; "
            f"`smscope campaign` adds one{paths.runs_elsewhere()}."
        )
    first, second = (every[number] for number in last)
    say(f"Set {which}: campaign {last[0]} begun {first[0].measured_utc}, campaign {last[1]} {second[0].measured_utc}.")
    texts = second[-1].texts
    if texts != plan.texts(Profile.load(gpu).arch):
        say(f"Campaign {last[1]} timed other texts of our kernels than today's, which the model is of.")
    if frozen is None and all(row.texts == texts for row in second) and first[-1].texts != texts:
        say(f"Campaign {last[0]} is of other kernels and does not count.")
        return judged(second), tuple(last[-1:])
    if any(row.texts != texts for row in (*first, *second)):
        raise InputError(
            f"Campaigns {last[0]} and {last[1]} of set {which} are of other kernels; add another campaign."
        )
    return judged(first, second), tuple(last)


def _of(gpu: str, which: Set, number: int, commit: str | None) -> tuple[rows.ProblemTiming, ...]:
    return tuple(row for row in rows.read(gpu, which, number) if row.freeze == commit)


def _frozen(gpu: str, asked: str | None) -> Freeze:
    """The freeze that is named, else the last one whose set b was timed on the GPU, twice where one was."""
    timed: dict[str | None, set[int]] = {}
    for number in rows.campaigns(gpu, "b"):
        for row in rows.read(gpu, "b", number):
            timed.setdefault(row.freeze, set()).add(number)
    twice = [commit for commit, numbers in timed.items() if len(numbers) > 1]
    return freeze.named(freeze.timed(timed if asked or not twice else twice, asked, f"set b was timed on {gpu}"))


def _say_what_changed(frozen: Freeze) -> None:
    """Choices are those of today's model, and a verdict is of the one that was frozen."""
    if not freeze.changed(frozen, freeze.hashes_of(stamp.ROOT, frozen.gpu)):
        return
    given = [each for each in freeze.verdicts() if each.freeze == frozen.commit]
    begin = f"all kernels: {MEASURED}: "
    then = [line.removeprefix(begin) for each in given for line in each.lines if line.startswith(begin)]
    lost = f"; by the verdict on file the model of then lost {then[0]}" if then else ""
    say(f"The model has changed since freeze {frozen.short}, and this is what today's would choose{lost}.")


def other_constants(profile: Profile) -> Iterator[Other]:
    """Published constants of the GPU itself, the measured ones of others, and the published ones of other kinds."""
    published = load()
    kinds = SHEETS.get(profile.gpu, ())
    if kinds:
        sheets = [derive(kind, published, discover()).profile for kind in kinds]
        own = {constant.name: constant for sheet in sheets for constant in sheet.constants}
        sheet = sheets[-1].model_copy(update={"constants": tuple(own.values())})
        yield Other("published and data sheet", constants.filled(sheet, profile), rival=False)
    for gpu in available():
        other = Profile.load(gpu)
        if other.gpu != profile.gpu and other.arch == profile.arch:
            yield Other(f"measured on {other.gpu}", constants.filled(other, profile))
    for kind in published.kinds:
        found = of_kind(kind)
        if found is not None:
            yield Other(f"published of {kind.kind}", constants.filled(found, profile))


def _write(frozen: Freeze, numbers: tuple[int, ...], found: Sequence[Table]) -> Path:
    now = freeze.hashes_of(stamp.ROOT, frozen.gpu)
    freeze.require_unchanged(frozen, stamp.ROOT)
    told = Verdict(
        freeze=frozen.commit, commit=stamp.commit().sha, campaigns=numbers, hashes=now, lines=lines_of(found)
    )
    return freeze.write(told)


def lines_of(found: Sequence[Table]) -> tuple[str, ...]:
    """The tables as a verdict keeps them."""
    return tuple(line for each in found for line in _lines(each))


def _lines(each: Table) -> Iterator[str]:
    whose = each.kernels or "all kernels"
    yield f"{whose}: {counted(each.problems, 'problem')}, floor {_percent(each.floor)}, error {each.errors.mean:.1%}"
    yield from (f"{whose}: {line.regrets.name}: {_percent(line.regrets)}{_against(line)}" for line in each.lines)
    yield from (f"{whose}: fault: {fault}" for fault in each.faults)


def _percent(found: Regrets) -> str:
    return f"{found.mean:.2%} / {found.worst:.1%}"


def _against(line: Line) -> str:
    return f" ({line.against[0]:+.2%} to {line.against[1]:+.2%})" if line.against else ""


def _drawn(each: Table, campaigns: int) -> Any:
    headings = ("chooser", "mean regret", "worst", "measured minus this, 95 %")
    lines: list[tuple[object, ...]] = []
    if campaigns > 1:
        lines.append(("floor", f"{each.floor.mean:.2%}", f"{each.floor.worst:.1%}", ""))
    for line in each.lines:
        found = line.regrets
        lines.append((found.name, f"{found.mean:.2%}", f"{found.worst:.1%}", _against(line).strip(" ()")))
    off = each.errors
    classes = ", ".join(f"{kind} {mean:.0%}" for kind, mean in off.of_class.items())
    lines.append((f"error of {off.count} predictions", f"{off.mean:.1%}", f"{off.worst_factor:.2f} x", classes))
    return console.table(f"{each.kernels or 'all kernels'}: {counted(each.problems, 'problem')}", headings, lines)


def _told(each: Table) -> dict[str, object]:
    return {
        "kernels": each.kernels,
        "problems": each.problems,
        "floor": {"mean": each.floor.mean, "worst": each.floor.worst},
        "choosers": [
            {
                "name": line.regrets.name,
                "mean": line.regrets.mean,
                "worst": line.regrets.worst,
                "against": list(line.against) if line.against else None,
            }
            for line in each.lines
        ],
        "errors": {
            "mean": each.errors.mean,
            "of_class": dict(each.errors.of_class),
            "worst_factor": each.errors.worst_factor,
            "configurations": each.errors.count,
        },
        "faults": list(each.faults),
    }
