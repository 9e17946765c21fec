"""Progress of long work on stderr: a bar on a terminal, a plain line per stage elsewhere."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Protocol

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn


class Watcher(Protocol):
    def doing(self, stage: str, what: str) -> None:
        """`what` of `stage` ('campaign 2/6') starts."""

    def finished(self, tasks: int = 1) -> None:
        """Count `tasks` more as done."""

    def say(self, line: str) -> None:
        """One sentence for the person at the terminal."""


class _Bar:
    def __init__(self, bar: Progress, total: int) -> None:
        self._bar = bar
        self._id = bar.add_task("", total=total)

    def remove(self) -> None:
        self._bar.remove_task(self._id)

    def doing(self, stage: str, what: str) -> None:
        self._bar.update(self._id, description=f"{stage}  {what}")

    def finished(self, tasks: int = 1) -> None:
        self._bar.advance(self._id, tasks)

    def say(self, line: str) -> None:
        self._bar.console.print(line, highlight=False, markup=False, soft_wrap=True)


class _Lines:
    """For output that is no terminal: the lines that a log needs, and no more."""

    def __init__(self, total: int) -> None:
        self._total, self._done, self._last = total, 0, ""

    def doing(self, stage: str, what: str) -> None:
        if stage != self._last:
            self.say(f"{stage}: {self._done} of {self._total} done")
        self._last = stage

    def finished(self, tasks: int = 1) -> None:
        self._done += tasks

    def say(self, line: str) -> None:
        print(line, file=sys.stderr, flush=True)


_shown: ContextVar[Progress | None] = ContextVar("_shown", default=None)


@contextmanager
def watching(total: int) -> Iterator[Watcher]:
    """A watcher for `total` pieces of work, fit for where stderr goes. Inside another one it is a second bar below."""
    console = Console(stderr=True)
    if not console.is_terminal:
        yield _Lines(total)
        return
    if (around := _shown.get()) is not None:
        below = _Bar(around, total)
        try:
            yield below
        finally:
            below.remove()
        return
    columns = (TextColumn("{task.description:<44}"), BarColumn(), MofNCompleteColumn())
    with Progress(*columns, TimeElapsedColumn(), TextColumn("left"), TimeRemainingColumn(), console=console) as bar:
        token = _shown.set(bar)
        try:
            yield _Bar(bar, total)
        finally:
            _shown.reset(token)


def say(line: str) -> None:
    _Lines(0).say(line)
