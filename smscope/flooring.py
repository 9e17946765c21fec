"""The verb `floors`: how our pick stands beside peers by the campaigns on file, and which floors it meets."""

from collections.abc import Sequence
from typing import Annotated, Any

import typer

from attention.campaign import plan, rows, set_floors
from attention.campaign.floors import Against, Ratio, Standing, standings
from microbench import console, paths
from microbench.console import Json
from microbench.console.progress import say
from microbench.console.si import counted, written
from microbench.errors import InputError
from microbench.machine import nvml
from microbench.results.profile import Profile, available
from smscope import using

COLUMNS: tuple[Against, ...] = ("torch", "FlashAttention-4", "ours")


def floors(
    gpu: Annotated[str | None, typer.Argument(help="A profile's name; by default the one that was timed.")] = None,
    which: Annotated[
        str, typer.Option("--set", help="floors; or use: whether attention's functions are ever slower.")
    ] = "floors",
    number: Annotated[
        int | None, typer.Option(min=1, help="One campaign; by default each problem's last line.")
    ] = None,
    of_freeze: Annotated[
        str | None, typer.Option("--of", help="With --set use: the freeze; by default the last that was timed.")
    ] = None,
    json: Json = False,
) -> None:
    """Say how our pick stands beside peers on the problems of floors, and which floors it meets.

    A ratio is our speed over another's: the fastest of torch's kernels, FlashAttention-4, the fastest of our
    configurations that were timed, the same problem without its mask, the same tokens dealt evenly. No GPU is needed;
    `smscope campaign --set floors` adds lines. Exit code 1 where a floor is missed.

    With --set use: attention.sdpa and flash_attn_func beside the best of every candidate that `smscope campaign --set
    use` timed, on the GPU and, where that takes less than 50 us, by the wall clock; the ten worst; what a choice costs
    the host, as `python -m tests.gpu.host_time` recorded it; and one verdict. Exit code 1 where it is not met.
    """
    if which == "use":
        using.say_verdict(gpu or _timed("use"), number, of_freeze, json)
        return
    if which != "floors" or of_freeze is not None:
        raise InputError("Floors are of --set floors, or of --set use, which alone has a freeze (--of).")
    slug = gpu or _timed("floors")
    numbers = [each for each in rows.campaigns(slug, "floors") if number in (None, each)]
    lines = [line for each in numbers for line in rows.read(slug, "floors", each)]
    if not lines:
        which = f"campaign {number}" if number else "campaign"
        times = f"`smscope campaign --set floors` times one{paths.runs_elsewhere()}."
        raise InputError(f"{slug} has no {which} of the set of floors; {times}")
    found = standings(lines)
    missed = [each for each in found if each.missed]
    if json:
        console.emit([_told(each) for each in found])
    else:
        headings = ("problem", "pick", "time", *COLUMNS, "beside", "floors")
        title = f"{slug}: {counted(len(found), 'problem')}, {len(missed)} below a floor"
        console.draw(console.table(title, headings, [_cells(each) for each in found]))
    _say_what_is_missing(slug, lines, found)
    if missed:
        raise typer.Exit(1)


def _timed(which: rows.Set) -> str:
    """The GPU here, where it was timed, or the only one that was."""
    timed = [each for each in available() if rows.campaigns(each, which)]
    here = [each.slug for each in nvml.visible_gpus() if each.slug in timed]
    if not here and len(timed) != 1:
        there = ", ".join(timed) or f"none yet; `smscope campaign --set {which}` times one{paths.runs_elsewhere()}"
        raise InputError(f"Name a GPU whose floors were timed (there are: {there}).")
    return (here or timed)[0]


def _say_what_is_missing(slug: str, lines: Sequence[rows.ProblemTiming], found: Sequence[Standing]) -> None:
    timed = {str(each.posed) for each in found}
    left = [name for name in set_floors.points() if name not in timed]
    if left:
        say(f"Not timed: {'; '.join(left)}.")
    texts = plan.texts(Profile.load(slug).arch)
    others = {str(line.posed) for line in lines} - {str(line.posed) for line in rows.of_texts(lines, texts)}
    if others:
        say(f"By other texts of our kernels than today's: {counted(len(others), 'problem')}.")


def _cells(each: Standing) -> tuple[object, ...]:
    pick, other = each.pick, next((one for one in each.ratios if one.against not in COLUMNS), None)
    what = f"{pick.variant.partition('/')[0]} {pick.pick[1]}" if pick else None
    time = written(each.seconds, "s") if each.seconds else pick.failure if pick else None
    beside = f"{_written(other)} {other.against}" if other else None
    return (str(each.posed), what, time, *(_written(each.ratio(name)) for name in COLUMNS), beside, _verdict(each))


def _written(ratio: Ratio) -> str:
    if ratio.value is None:
        return "-"
    return f"{ratio.value:.2f}{' (eager)' if ratio.eager else ''}"


def _verdict(each: Standing) -> str:
    """Met, or which floors are not, or of what nothing was timed."""
    if not any(ratio.least for ratio in each.ratios):
        return ""
    said = [f"{ratio.against} {ratio.value:.3f}, asked {ratio.least:.2f}" for ratio in each.missed]
    said += [f"{ratio.against} not timed" for ratio in each.open]
    refused = [f"{ratio.against} refuses" for ratio in each.ratios if ratio.least and ratio.refused]
    return "; ".join(said or ["met", *refused])


def _told(each: Standing) -> dict[str, Any]:
    return {
        "problem": str(each.posed),
        "point": each.point,
        "campaign": each.campaign,
        "pick": f"{each.pick.variant} {each.pick.pick[1]}" if each.pick else None,
        "failure": each.pick.failure if each.pick else None,
        "seconds": each.seconds,
        "tflops": each.tflops,
        "ratios": [
            {
                "against": ratio.against,
                "by": ratio.by,
                "ratio": ratio.value,
                "floor": ratio.least,
                "met": ratio.met,
                "eager": ratio.eager,
                "refused": ratio.refused,
            }
            for ratio in each.ratios
        ],
    }
