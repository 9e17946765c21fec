"""What `smscope floors --set use` says: whether attention's functions are ever slower, by the campaigns on file."""

from textwrap import shorten
from typing import Any

import typer

from attention.campaign import freeze, host_choice, rows, set_use
from attention.campaign.host_choice import HostCost
from attention.campaign.never_slower import MOST, Ratio, Standing, Verdict, verdict
from microbench import console
from microbench.console.si import counted, written

HEADINGS = ("problem", "use", "function", "by", "ratio", "it chose", "time", "the best", "time")
MOST_LETTERS = 100


def say_verdict(gpu: str, number: int | None, of_freeze: str | None, json: bool) -> None:
    """Print ratios, the worst of them, and the verdict. Exit code 1 where it is not met. Raises InputError."""
    found, frozen = judged(gpu, number, of_freeze)
    costs = host_choice.host_costs(gpu)
    if json:
        console.emit(_told(gpu, frozen, found, costs))
    else:
        timed = len({str(ratio.posed) for each in found.standings for ratio in each.ratios})
        title = f"{gpu}, freeze {frozen[:12]}: the worst of {counted(timed, 'problem')}"
        console.draw(console.table(title, HEADINGS, [_cells(each) for each in found.worst]))
        host = tuple(map(str, costs)) or ("what a choice costs the host is not on file of this GPU",)
        for line in (*host, *found.lines):
            print(line)
    if not (found.met and all(each.met for each in costs)):
        raise typer.Exit(1)


def judged(gpu: str, number: int | None = None, of_freeze: str | None = None) -> tuple[Verdict, str]:
    """The verdict on a GPU, and the commit of the freeze that was drawn from: the last one. Raises InputError."""
    numbers = [each for each in rows.campaigns(gpu, "use") if number in (None, each)]
    lines = [line for each in numbers for line in rows.read(gpu, "use", each)]
    frozen = freeze.timed((line.freeze for line in lines), of_freeze, f"set of use was timed on {gpu}")
    drawn = {str(each.posed): None for each in set_use.drawn(frozen)}
    return verdict([line for line in lines if line.freeze == frozen], drawn.keys()), frozen


def _cells(each: Ratio) -> tuple[object, ...]:
    took = written(each.seconds, "s") if each.seconds else each.failure
    took = took if each.graphed or each.by != "GPU" else f"{took} (no graph)"
    problem = shorten(str(each.posed), MOST_LETTERS, placeholder=" ...")  # lengths, each its own, may be hundreds
    best = each.best, written(each.best_seconds, "s")
    return problem, each.use, each.function, each.by, f"{each.value:.3f}", each.names, took, *best


def _told(gpu: str, frozen: str, found: Verdict, costs: tuple[HostCost, ...]) -> dict[str, Any]:
    return {
        "gpu": gpu,
        "freeze": frozen,
        "met": found.met and all(each.met for each in costs),
        "standings": [_standing(each) for each in found.standings],
        "worst": [_row(each) for each in found.worst],
        "host": [
            {"call": each.row.call, "us": each.row.host_us, "most_us": each.most_us, "met": each.met} for each in costs
        ],
        "missing": list(found.missing),
        "lacks": list(found.lacks),
        "lines": list(found.lines),
    }


def _standing(each: Standing) -> dict[str, Any]:
    return {
        "function": each.function,
        "by": each.by,
        "problems": len(each.ratios),
        "share": each.share,
        "below": [_row(ratio) for ratio in each.ratios if ratio.value < MOST],
        "least": each.least,
        "met": each.met,
    }


def _row(each: Ratio) -> dict[str, Any]:
    return {
        "problem": str(each.posed),
        "use": each.use,
        "function": each.function,
        "by": each.by,
        "ratio": each.value,
        "names": each.names,
        "seconds": each.seconds,
        "best": each.best,
        "best_seconds": each.best_seconds,
        "failure": each.failure,
        "graphed": each.graphed,
    }
