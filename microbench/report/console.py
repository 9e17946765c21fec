"""What every verb shares: its options, and what it prints: tables for a person, one line of JSON for a program."""

import json
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console, RenderableType
from rich.table import Table

from microbench.profile import available
from microbench.record import Record

Json = Annotated[bool, typer.Option("--json", help="One line of JSON on stdout, and nothing else there.")]
Folders = Annotated[
    list[Path] | None, typer.Option("--probes", help="One more folder of probes, <family>/<name>.py; repeatable.")
]


def profiles(incomplete: str) -> list[str]:
    """What a shell offers where a profile is named."""
    return [gpu for gpu in available() if gpu.startswith(incomplete)]


Gpu = Annotated[str, typer.Argument(help="The name of a profile, such as h100-sxm-80gb.", autocompletion=profiles)]

# Where stdout is no terminal rich takes 80 columns, and folds every cell of a table.
LOG_COLUMNS = 160


def emit(value: Any) -> None:
    """One line of JSON, and nothing else, on stdout."""
    print(json.dumps(value, allow_nan=False), flush=True)


def draw(*parts: RenderableType) -> None:
    """Tables and sentences on stdout."""
    console = Console(width=None if sys.stdout.isatty() else LOG_COLUMNS, highlight=False)
    for part in parts:
        console.print(part, markup=False) if isinstance(part, str) else console.print(part)


def table(title: str, headings: Sequence[str], rows: Iterable[Sequence[object]]) -> Table:
    """A plain table; None is an empty cell."""
    drawn = Table(title=title, title_justify="left")
    for heading in headings:
        drawn.add_column(heading, overflow="fold")
    for row in rows:
        drawn.add_row(
            *("" if cell is None else f"{cell:.4g}" if isinstance(cell, float) else str(cell) for cell in row)
        )
    return drawn


def troubles(records: Iterable[Record]) -> list[str]:
    """One sentence per reason why rows hold no value, with the probes it befell and how many rows it cost."""
    told: dict[tuple[str, str], list[Record]] = {}
    for row in records:
        if row.status in ("failed", "unsupported"):
            told.setdefault((row.status, row.reason or ""), []).append(row)
    sentences = []
    for (status, reason), rows in sorted(told.items()):
        probes = sorted({row.probe if row.method != "numba" else f"{row.probe} (numba)" for row in rows})
        count = f"{len(rows)} row{'s' if len(rows) > 1 else ''}"
        sentences.append(f"{status}, {count}: {reason}: {', '.join(probes)}")
    return sentences
