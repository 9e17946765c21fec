"""The tables of data/verification as text: ptxas' latencies, GPUs held against others, bugs.

Of probes and kernels there is no count here: a new one would change it.
"""

from collections.abc import Sequence

from microbench.machine.arch import ARCHS
from microbench.report import markdown
from microbench.verify import forward as forwards
from microbench.verify.differential import rows as differentials
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


def differential() -> str:
    """One line per wrapper and GPU: layouts, how many agree, exactly or within which tolerance, and the worst error."""
    lines = []
    for file in differentials.files():
        rows = differentials.read(file)
        groups = dict.fromkeys((row.gpu, row.wrapper, row.values, row.tolerance) for row in rows)
        for group in groups:
            here = [row for row in rows if (row.gpu, row.wrapper, row.values, row.tolerance) == group]
            gpu, wrapper, values, tolerance = group
            error_max = max((row.worst_error or 0.0 for row in here), default=0.0)
            agreeing = sum(row.verdict == "agrees" for row in here)
            within = f"{tolerance:.1e}" if tolerance else "exact"
            error = f"{error_max:.1e}" if error_max else "0" if agreeing == len(here) else ""
            cells = (str(len(here)), str(min(row.seeds for row in here)), within, error, str(agreeing))
            lines.append((gpu, f"`{wrapper}`", values, *cells))
    headings = ("GPU", "wrapper", "values", "layouts", "seeds each", "tolerance", "worst error", "layouts that agree")
    return markdown(headings, tuple(lines)) if lines else "No GPU was held against the emulator yet."


def forward() -> str:
    """A table for each GPU and variant: features down, head dims across; problems and the worst error in each cell."""
    tables = []
    for file in forwards.files():
        rows = forwards.read(file, forwards.ForwardRow)
        for gpu, variant in dict.fromkeys((row.gpu, row.variant) for row in rows):
            here = [row for row in rows if (row.gpu, row.variant) == (gpu, variant)]
            columns = dict.fromkeys(row.head_dims for row in here)
            cells = {(row.feature, row.head_dims): _forward_cell(row) for row in here}
            lines = tuple(
                (feature, *(cells.get((feature, column), "") for column in columns))
                for feature in dict.fromkeys(row.feature for row in here)
            )
            every = [row for row in here if row.feature == forwards.ALL]
            total, failed = sum(row.problems for row in every), sum(row.failed for row in every)
            kernels, worst = sum(row.cubins for row in every), max(row.worst_lse_ratio for row in every)
            said = f"`{variant}` on {gpu}: {total - failed} of {total} problems right, with {kernels} kernels"
            headings = ("feature", *(f"head dim {column.replace('-', ' to ')}" for column in columns))
            tables.append(f"{said}; lse at most {worst:.2f} of what it may err.\n\n{markdown(headings, lines)}")
    return "\n\n".join(tables) if tables else "No GPU ran these problems yet."


def _forward_cell(row: forwards.ForwardRow) -> str:
    failed = f", {row.failed} wrong" if row.failed else ""
    return f"{row.problems}: {max(row.worst_ratio, row.worst_block_ratio):.2f}{failed}"


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
