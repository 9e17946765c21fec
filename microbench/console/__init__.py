"""What every verb shares: its options, and what it prints: tables for a person, one line of JSON for a program."""

import errno
import json
import os
import shutil
import sys
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from io import TextIOWrapper
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text

from microbench.errors import DataWarning, EnvironmentLacks

Json = Annotated[bool, typer.Option("--json", help="One line of JSON on stdout, and nothing else there.")]
Folders = Annotated[
    list[Path] | None, typer.Option("--probes", help="One more folder of probes, <family>/<name>.py; repeatable.")
]
Archs = Annotated[list[str] | None, typer.Option("--arch", help="sm70 ... sm120a; repeatable; all by default.")]
Probes = Annotated[list[str] | None, typer.Option("--only", help="A probe's name; repeatable.")]
Write = Annotated[bool, typer.Option("--write", help="Write the tables in data/verification again.")]

# Where stdout is no terminal rich takes 80 columns, and folds every cell of a table.
LOG_COLUMNS = 160
# What `make bench` prints stays readable in the narrowest terminal, in a log and in an issue.
BENCH_COLUMNS = 80
FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


def emit(value: Any) -> None:
    text = json.dumps(value, allow_nan=False)
    with _room():
        print(text, flush=True)


@contextmanager
def _room() -> Iterator[None]:
    """Around what is written on stdout. Raises EnvironmentLacks where that is a file on a full disk."""
    try:
        yield
    except OSError as error:
        if error.errno not in FULL:
            raise
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # where Python writes the rest when it ends
        raise EnvironmentLacks(
            f"What smscope has to say cannot be written: {error.strerror}; give its output more room."
        ) from error


def show(json: bool, value: Any, *parts: RenderableType) -> None:
    """`value` for a program, `parts` for a person."""
    if json:
        emit(value)
    else:
        draw(*parts)


def draw(*parts: RenderableType, log_columns: int = LOG_COLUMNS) -> None:
    """Tables and sentences on stdout; `log_columns` wide where that is no terminal."""
    console = Console(width=None if sys.stdout.isatty() else log_columns, highlight=False)
    for part in parts:
        whole = isinstance(part, Text) and bool(part.no_wrap)
        with _room():
            console.print(part, markup=not isinstance(part, str), soft_wrap=whole)


def line(text: str) -> Text:
    """A path or a command: on one line, however long, so that it can be copied."""
    return Text(text, no_wrap=True)


def python() -> str:
    """How a person types the interpreter that runs this, from the folder they are in."""
    bin_folder, here = Path(sys.executable).parent, Path.cwd()
    return str(Path(sys.executable).relative_to(here)) if bin_folder.is_relative_to(here) else "python"


def smscope() -> str:
    """How a person types our command, from the folder they are in: by its name where the shell finds this one."""
    ours = Path(sys.executable).with_name("smscope")
    return "smscope" if shutil.which("smscope") == str(ours) else f"{python()} -m smscope"


def plainly() -> None:
    """On a command line a warning of data is its sentence alone, without the line of ours that met it.

    A sign that the terminal has not, such as the µ of microseconds in ASCII, is a question mark.
    """
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="replace")
    usual = warnings.formatwarning

    def said(
        message: Warning | str, category: type[Warning], filename: str, lineno: int, line: str | None = None
    ) -> str:
        return f"{message}\n" if issubclass(category, DataWarning) else usual(message, category, filename, lineno, line)

    warnings.formatwarning = said


def near(path: Path) -> str:
    return str(path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path)


def made(folder: Path) -> tuple[str, ...]:
    """Asked before a file is written there: a sentence of the folder where that makes it, as every command may."""
    return () if folder.exists() else (f"Made the folder {near(folder)}.",)


def table(title: str, headings: Sequence[str], rows: Iterable[Sequence[object]]) -> Table:
    drawn = Table(title=title, title_justify="left")
    for heading in headings:
        drawn.add_column(heading, overflow="fold")
    for row in rows:
        drawn.add_row(
            *("" if cell is None else f"{cell:.4g}" if isinstance(cell, float) else str(cell) for cell in row)
        )
    return drawn
