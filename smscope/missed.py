"""What is asked of the kernels and of the model, what the last campaigns on file gave, and what is missed.

floors       of our pick, each problem of the set by its last line       attention/campaign/floors.py
functions    of what users call, on the set of the last freeze           attention/campaign/never_slower.py
the host     what a choice costs it                                      attention/campaign/host_choice.py
the model    of the last verdict on a set b, as it stands on file        attention/campaign/table.py

What a verdict counts is read from its lines: the model may have changed since, and what was asked of it then is told.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from attention.campaign import freeze, host_choice, never_slower, rows, set_floors, set_use, table
from attention.campaign.floors import Against, Ratio, Standing, standings
from attention.campaign.freeze import Verdict
from microbench.console.si import counted
from microbench.report import markdown

HEADINGS = ("what", "asked", "given", "")
BESIDE: dict[Against, str] = {
    "torch": "over torch's",
    "FlashAttention-4": "over FlashAttention-4's",
    "unmasked": "masked over unmasked",
    "evenly dealt": "dealt unevenly over evenly",
}
# A line of a verdict, of all kernels: a chooser's mean and worst regret, or a limit that is broken.
ALL = "all kernels: "
REGRET = re.compile(r"(.+): ([\d.]+)% / ([\d.]+)%.*")
COUNTED = re.compile(r"(\d+) problems?, floor ([\d.]+)% / [\d.]+%, error ([\d.]+)%")
FACTOR = re.compile(r"fault: a prediction off by ([\d.]+) times")
CLASS = re.compile(r"fault: error of (\w+) ([\d.]+)%")
NOT_BETTER = re.compile(r"fault: not shown to be better than (.+) \(.+\)")


@dataclass(frozen=True)
class Asked:
    """One thing that is asked. `met` is None where a part of it was not timed, and nothing of the rest was missed."""

    what: str
    asked: str
    given: str
    met: bool | None

    @property
    def cells(self) -> tuple[str, ...]:
        return self.what, self.asked, self.given, {True: "met", False: "**missed**", None: "open"}[self.met]


def block(gpu: str) -> str:
    """What a page says of a GPU: all that is asked, then each floor that is missed."""
    found = standings(_floor_lines(gpu))
    asked = (*of_floors(found), *of_functions(gpu), *of_host(gpu), *of_model(gpu))
    missed = sum(each.met is False for each in asked)
    said = [
        f"{counted(missed, 'line')} of {len(asked)} missed.",
        markdown(HEADINGS, tuple(each.cells for each in asked)),
    ]
    if not found:
        said.append("The set of floors was not timed on this GPU.")
    if below := tuple(_below(each, ratio) for each in found for ratio in each.missed):
        said += ["The floors that are missed:", markdown(("problem", "speed", "asked", "given"), below)]
    return "\n\n".join(said)


def _floor_lines(gpu: str) -> list[rows.ProblemTiming]:
    return [line for number in rows.campaigns(gpu, "floors") for line in rows.read(gpu, "floors", number)]


def of_floors(found: Sequence[Standing]) -> Iterator[Asked]:
    """A line for each point of the set and each floor of its problems, and one of those that were not timed."""
    for point in set_floors.POINTS:
        asked = [ratio for each in found if each.point == point for ratio in each.ratios if ratio.least is not None]
        for against, beside in BESIDE.items():
            if mine := [ratio for ratio in asked if ratio.against == against]:
                yield floor(f"speed, {point}: {beside}", mine)
    every, timed = set_floors.points(), {str(each.posed) for each in found}
    if found and (left := [name for name in every if name not in timed]):
        yield Asked("problems of the set of floors", "all timed", f"all but {len(left)}", None)


def floor(what: str, ratios: Sequence[Ratio]) -> Asked:
    timed = [ratio for ratio in ratios if ratio.value is not None]
    refused, met = sum(ratio.refused for ratio in ratios), sum(bool(ratio.met) for ratio in ratios)
    given = [f"{met} of {len(timed)}"] if timed else []
    given += [f"the least {min(ratio.value or 0.0 for ratio in timed):.3f}"] if timed else []
    given += [f"refused on {refused}"] if refused else []
    left = len(ratios) - len(timed) - refused
    given += [f"not timed on {left}"] if left else []
    wrong = met < len(timed)
    return Asked(what, f"{ratios[0].least:.2f} on each", ", ".join(given), False if wrong else None if left else True)


def _below(each: Standing, ratio: Ratio) -> tuple[str, ...]:
    return str(each.posed), BESIDE[ratio.against], f"{ratio.least:.2f}", f"{ratio.value:.3f}"


def of_functions(gpu: str) -> Iterator[Asked]:
    """By the lines of the last freeze whose set of use was timed: its campaigns are the last ones."""
    lines: list[rows.ProblemTiming] = []
    for number in reversed(rows.campaigns(gpu, "use")):
        found = rows.read(gpu, "use", number)
        if lines and any(each.freeze != lines[-1].freeze for each in found):
            break
        lines = [*found, *lines]
    frozen = lines[-1].freeze if lines else None
    if frozen is None:
        return
    verdict = never_slower.verdict(lines, {str(each.posed): None for each in set_use.drawn(frozen)}.keys())
    most, share, least = never_slower.MOST, never_slower.SHARE, never_slower.LEAST
    for each in verdict.standings:
        given = f"{100 * each.share:.1f} % of {len(each.ratios)}, the least {each.least:.3f}"
        what = f"{each.function} beside the best, {each.by}, freeze {frozen[:12]}"
        yield Asked(what, f"{most} on {100 * share:.0f} %, {least:.2f} on all", given, each.met)
    if verdict.missing:
        yield Asked("problems of that set", "all timed", f"{len(verdict.missing)} are not", None)


def of_host(gpu: str) -> Iterator[Asked]:
    for each in host_choice.host_costs(gpu):
        beside = f", yardstick {each.row.yardstick_us:.0f} µs" if each.row.yardstick_us else ""
        given = f"{each.row.host_us:.0f} µs{beside}"
        yield Asked(f"the host's {each.row.call}", f"at most {each.most_us:.0f} µs", given, each.met)


def last_verdict(gpu: str) -> Verdict | None:
    """That of the latest campaigns of a GPU; None where it has none."""
    of = {each.commit: each.gpu for each in freeze.freezes()}
    mine = (each for each in freeze.verdicts() if of.get(each.freeze) == gpu)
    return max(mine, key=lambda each: each.campaigns, default=None)


def of_model(gpu: str) -> Iterator[Asked]:
    verdict = last_verdict(gpu)
    if verdict is None:
        return
    lines = tuple(line.removeprefix(ALL) for line in verdict.lines if line.startswith(ALL))
    count, floor, error = next(match.groups() for match in map(COUNTED.fullmatch, lines) if match)
    regrets = {match[1]: (float(match[2]), float(match[3])) for match in map(REGRET.fullmatch, lines) if match}
    mean, worst = regrets[table.MEASURED]
    of = f"of {count} problems, freeze {verdict.freeze[:12]}"
    allowed = 100 * max(table.MEAN, float(floor) / 100 + table.ABOVE_FLOOR)

    def most(what: str, fault: str, least: float, given: float, digits: int) -> Asked:
        met = not any(line.startswith(f"fault: {fault}") for line in lines)
        return Asked(what, f"at most {least:.{digits}f} %", f"{given:.{digits}f} %", met)

    yield most(f"mean regret by measured constants alone {of}", "mean regret", allowed, mean, 2)
    yield most("the worst regret of these", "worst regret", 100 * table.WORST, worst, 1)
    for name, share in ((table.TWINS, table.WITHOUT_TWINS), (table.HEAD_DIM, table.WITHOUT_HEAD_DIM)):
        fault = f"{table.MEASURED} {name}: mean regret"
        yield most(f"mean regret by constants {name}", fault, 100 * share, regrets[name][0], 2)
    yield most("mean error of the predictions", "mean error", 100 * table.ERROR, float(error), 1)
    yield _broken("mean error in each class", f"at most {100 * table.CLASS_ERROR:.0f} %", lines, CLASS, "{} {} %")
    yield _broken("each prediction", f"within a factor of {table.FACTOR:g}", lines, FACTOR, "one off by {}")
    yield _broken("better than other constants and tiles", "shown of each", lines, NOT_BETTER, "{}")


def _broken(what: str, asked: str, lines: Iterable[str], fault: re.Pattern[str], said: str) -> Asked:
    """Of what a verdict names only where it is broken."""
    found = [said.format(*match.groups()) for match in map(fault.fullmatch, lines) if match]
    not_of = "not of " if said == "{}" and found else ""
    return Asked(what, asked, f"{not_of}{', '.join(found)}" or "no fault", not found)
