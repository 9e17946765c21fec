"""The tables of data/verification as text: ptxas' latencies, and planted bugs.

Of probes and kernels there is no count here: a new one would change it.
"""

from collections.abc import Sequence

from microbench.machine.arch import ARCHS
from microbench.report import markdown
from microbench.verify.tables import BlindRow, LatencyRow, read

_MODES = ("eager", "lazy", "random")


def static_latency() -> str:
    """One line per instruction, one column per architecture: cycles, or that a scoreboard decides; * where both do."""
    rows = read(LatencyRow)
    columns = [arch.name for arch in ARCHS if any(row.arch == arch.name for row in rows)]
    cells = {(row.instruction, row.arch): _cycles(row) for row in rows}
    lines = tuple(
        (f"`{name}`", *(cells.get((name, column), "") for column in columns))
        for name in dict.fromkeys(row.instruction for row in rows)
    )
    return markdown(("instruction", *columns), lines)


def blind_bugs() -> str:
    """One line per source and architecture: how many of the bugs planted in it each mode found at first, and finds."""
    rows = read(BlindRow)
    lines = []
    for file, arch in dict.fromkeys((row.file, row.arch) for row in rows):
        here = [row for row in rows if (row.file, row.arch) == (file, arch)]
        first = (sum(modes) for modes in zip(*(row.found_first for row in here), strict=True))
        today = (sum(modes) for modes in zip(*(row.found_today for row in here), strict=True))
        missed = ", ".join(f"`{row.bug}`" for row in here if not any(row.found_today))
        lines.append((f"`{file}`", arch, str(len(here)), *map(str, first), *map(str, today), missed))
    headings = ("source", "written for", "bugs", *(f"{when}, {m}" for when in ("first run", "today") for m in _MODES))
    return markdown((*headings, "found by none today"), tuple(lines))


def blind_rate(archs: Sequence[str]) -> str:
    """How many of the bugs planted in kernels of these architectures are found, in words; empty where there is none."""
    here = [row for row in read(BlindRow) if row.arch in archs]
    some, every = (sum(how(row.found_today) for row in here) for how in (any, all))
    by_all = "" if some == every else f" ({every} in every mode)"
    return f"{some} of {len(here)} blind bugs found{by_all}" if here else ""


def _cycles(row: LatencyRow) -> str:
    if row.scoreboard == "yes":
        return "scoreboard"
    return row.cycles.replace(" ", " or ") + ("*" if row.scoreboard == "in part" else "")
