"""The tables of an explanation: terms, constants, candidates, refusals."""

from rich.table import Table

from attention.choose.candidates import TIE_BAND, Candidate
from attention.choose.choose import Choice
from attention.choose.constant_used import ConstantUsed
from microbench.console.si import counted, digits, written

SHOWN_CANDIDATES = 8


def _table(title: str, *headings: str) -> Table:
    table = Table(title=title, title_justify="left")
    for heading in headings:
        table.add_column(heading, overflow="fold")
    return table


def terms(pick: Candidate) -> Table:
    assert pick.prediction is not None
    efficiency = pick.prediction.efficiency
    title = "Predicted time by term (terms of a phase overlap; phases run one after another)"
    if efficiency.timings:
        on_file = counted(efficiency.timings, "timing")
        title += f"; divided by an efficiency of {digits(efficiency.value)}, from {on_file} on file"
    table = _table(title, "phase", "term", "time", "constant")
    for term in pick.prediction.terms:
        bound = " (the bound)" if term.term == pick.prediction.bound_by else ""
        table.add_row(term.phase, term.term + bound, written(term.seconds, "s"), term.constant)
    return table


def constants(
    used: tuple[ConstantUsed, ...], title: str = "Constants of the profile that the prediction uses"
) -> Table:
    table = _table(title, "constant", "value", "low", "high", "label")
    for each in used:
        values = (written(number, each.unit) for number in (each.value, each.low, each.high))
        table.add_row(each.name, *values, each.label)
    return table


def candidates(choice: Choice) -> Table:
    shown = choice.candidates[:SHOWN_CANDIDATES]
    shown += tuple(each for each in _best_of_each_variant(choice) if each not in shown)
    hidden = len(choice.candidates) - len(shown)
    mistrusted = choice.mistrusted
    if choice.tuning is not None:
        decided = "predictions; timings decided"
    elif mistrusted:
        decided = f"timings on this CPU do not confirm {mistrusted[0].variant}"
    else:
        decided = f"within {TIE_BAND:.1%} they tie; a timed kernel goes first, then ours, then the least work to hide"
    title = f"Candidates, fastest first ({decided})"
    table = _table(
        title + (f"; {hidden} slower ones not shown" if hidden else ""), "variant", "configuration", "time", ""
    )
    for each in shown:
        if each.prediction is None:
            time, remark = "", each.unpredicted or ""
        else:
            time, remark = written(each.prediction.seconds, "s"), f"bound by {each.prediction.bound_by}"
        table.add_row(each.variant, str(each.config), time, _standing(each, choice) + remark)
    return table


def _standing(candidate: Candidate, choice: Choice) -> str:
    if candidate == choice.pick:
        return "picked; "
    if candidate in choice.mistrusted:
        return "not confirmed by timings; "
    return "ties; " if candidate in choice.tied else ""


def _best_of_each_variant(choice: Choice) -> list[Candidate]:
    best: dict[str, Candidate] = {}
    for each in choice.candidates:
        best.setdefault(each.variant, each)
    return list(dict.fromkeys((*best.values(), choice.pick)))


def refusals(choice: Choice) -> Table:
    table = _table("Refused", "variant", "configurations", "reason")
    configs: dict[tuple[str, str], list[str]] = {}
    for refusal in choice.refused:
        where = configs.setdefault((refusal.variant, refusal.reason), [])
        if refusal.config is not None:
            where.append(str(refusal.config))
    for (variant, reason), which in configs.items():
        table.add_row(variant, "; ".join(which) or "all", reason)
    return table
