"""How well the runs of a board repeat each other, in words and as a table of what does not."""

from microbench.console import si
from microbench.probes import discover
from microbench.report import markdown
from microbench.results import record
from microbench.results.committed import shipped
from microbench.results.profile import Profile
from microbench.results.repeats import CYCLES, OTHER, Repeated, Repeats, repeats


def repeated(profile: Profile) -> str:
    """Of the committed runs of this kind of GPU: each board with three, and the constants that are further apart."""
    runs, _ = record.read_all(profile.gpu)
    known = set(shipped([run.path for run in runs]))
    found = repeats([run for run in runs if run.path in known], discover())
    return "\n\n".join(map(_board, found)) or "No board has three full runs by the same code."


def _board(found: Repeats) -> str:
    every = len(found.constants) + len(found.missing)
    agree = len(found.constants) - len(found.apart)
    text = (
        f"Board {found.board}, {len(found.runs)} full runs: {agree} of {every} constants ({100 * found.share:.0f} %) "
        f"agree within {100 * CYCLES:.0f} % in cycles and per clock, and within {100 * OTHER:.0f} % in everything else."
    )
    missing = f" Not in every run: {', '.join(f'`{name}`' for name in found.missing)}." if found.missing else ""
    if not found.apart:
        return text + missing
    headings = ("further apart", "the runs", "unit", "apart by")
    return f"{text}{missing}\n\n{markdown(headings, tuple(map(_line, found.apart)))}"


def _line(each: Repeated) -> tuple[str, ...]:
    by = si.scale(max(each.values), each.unit)
    values = ", ".join(si.digits(value / by.divisor) for value in each.values)
    return f"`{each.name}`", values, by.unit, f"{100 * each.spread:.1f} %"
