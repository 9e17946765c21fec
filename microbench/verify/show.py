"""A matrix of kernels for people: progress while it compiles, one line per kernel and architecture, and what broke."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path

import typer
from rich.table import Table

from microbench import console
from microbench.compile import cache
from microbench.console.progress import say, watching
from microbench.console.si import counted
from microbench.machine import tools
from microbench.verify import matrix
from microbench.verify.tables import BuildRow


def watched(todo: Sequence[matrix.Job]) -> list[matrix.Checked]:
    """Every job compiled and checked. Raises DataError where the cache cannot be written."""
    cache.require_writable()
    rows = []
    with watching(len(todo)) as watcher:
        for row in matrix.run(todo):
            watcher.doing(row.arch, row.kernel)
            watcher.finished()
            rows.append(row)
    return rows


def say_all(rows: list[matrix.Checked], json: bool) -> None:
    """Draw the table and every problem, or write them as JSON. Raises typer.Exit(1) where there is a problem."""
    if json:
        console.emit([asdict(row) | {"ok": not row.problems} for row in rows])
    else:
        console.draw(_kernels(rows), *_broken(rows))
    if any(row.problems for row in rows):
        raise typer.Exit(1)


def say_written(files: Sequence[Path]) -> None:
    """Where a table of each probe or kernel was written."""
    what = counted(len(files), "table") if len(files) != 1 else files[0].name
    say(f"Wrote {what} in data/verification/{files[0].parent.name}.")


def _kernels(rows: list[matrix.Checked]) -> Table:
    """One line per kernel and architecture: the largest of its builds, and what they took to compile."""
    seconds = defaultdict[tuple[str, str], float](float)
    absent = defaultdict[tuple[str, str], int](int)
    for row in rows:
        seconds[row.kernel, row.arch] += row.compile_seconds or 0.0
        absent[row.kernel, row.arch] += not row.compiled
    headings = ("kernel", "arch", "builds", "registers", "smem B", "spill B", "compile s", "NVRTC", "rules")
    lines = [
        (
            *(row.kernel, row.arch, row.builds, row.registers_max, row.smem_bytes_max, row.spill_bytes_max),
            *(seconds[row.kernel, row.arch], row.nvrtc),
            _standing(row.builds - row.kept, absent[row.kernel, row.arch]),
        )
        for row in matrix.table(rows, BuildRow)
    ]
    return console.table(counted(len(rows), "kernel"), headings, lines)


def _standing(failed: int, absent: int) -> str:
    parts = ((failed - absent, "broken"), (absent, "not compiled"))
    return ", ".join(f"{count} {what}" for count, what in parts if count) or "kept"


def _broken(rows: list[matrix.Checked]) -> Iterator[str]:
    """One line per broken rule, and one per reason why kernels did not compile."""
    absent = defaultdict[str, list[str]](list)
    for row in rows:
        if not row.compiled:
            absent[row.problems[0]].append(row.kernel)
            continue
        yield from (f"{row.kernel} {row.arch} {row.build}: {problem}" for problem in row.problems)
    for reason, kernels in absent.items():
        share = f"{len(kernels)} of {counted(len(rows), 'kernel')}"
        yield f"not compiled, {share}: {reason} ({', '.join(sorted(set(kernels)))})"
    if len(wheels := tools.named(absent)) > 1:
        yield f"Everything that is missing, in one command: {tools.install(wheels)}"
