"""Progress of long work on stderr: a bar on a terminal; elsewhere a plain line per stage, and one every half minute."""

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Protocol

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

LINE_SECONDS = 30.0  # from one line of a stage to the next, where stderr is no terminal


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
        self._total, self._done, self._last, self._told = total, 0, "", time.monotonic()

    def doing(self, stage: str, what: str) -> None:
        if stage != self._last:
            self._tell(stage)
        self._last = stage

    def finished(self, tasks: int = 1) -> None:
        self._done += tasks
        if time.monotonic() >= self._told + LINE_SECONDS:
            self._tell(self._last)

    def _tell(self, stage: str) -> None:
        self._told = time.monotonic()
        self.say(f"{stage}: {self._done} of {self._total} done" if stage else f"{self._done} of {self._total} done")

    def say(self, line: str) -> None:
        print(line, file=sys.stderr, flush=True)


class _Below(_Lines):
    """Inside another watcher: a log needs that one's stages alone."""

    def _tell(self, stage: str) -> None:
        pass


_shown: ContextVar[Progress | _Lines | None] = ContextVar("_shown", default=None)


@contextmanager
def watching(total: int) -> Iterator[Watcher]:
    """A watcher for `total` pieces of work, fit for where stderr goes. Inside another one it is a second bar below.

    In a log the inner one says its sentences alone.
    """
    around = _shown.get()
    if isinstance(around, Progress):
        below = _Bar(around, total)
        try:
            yield below
        finally:
            below.remove()
        return
    if around is not None:
        yield _Below(total)
        return
    console = Console(stderr=True)
    if not console.is_terminal:
        lines = _Lines(total)
        with _showing(lines):
            yield lines
        return
    columns = (TextColumn("{task.description:<44}"), BarColumn(), MofNCompleteColumn())
    with (
        Progress(*columns, TimeElapsedColumn(), TextColumn("left"), TimeRemainingColumn(), console=console) as bar,
        _showing(bar),
    ):
        yield _Bar(bar, total)


@contextmanager
def _showing(shown: Progress | _Lines) -> Iterator[None]:
    token = _shown.set(shown)
    try:
        yield
    finally:
        _shown.reset(token)


def say(line: str) -> None:
    _Lines(0).say(line)
