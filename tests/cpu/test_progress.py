"""Bars of long work: one inside another is a second line of the same display, and gone with its end."""

import pytest
from rich.progress import Progress

from microbench.console import progress


def test_a_watcher_inside_another_is_a_bar_below_it_and_goes_away(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")  # by which rich takes any stream for a terminal
    monkeypatch.setenv("TERM", "xterm")
    with progress.watching(3) as outer:
        outer.doing("probes", "one")
        shown = progress._shown.get()
        assert isinstance(shown, Progress) and len(shown.tasks) == 1
        with progress.watching(5) as inner:
            inner.doing("points", "two")
            inner.finished(5)
            inner.say("a sentence")
            assert [(task.completed, task.total) for task in shown.tasks] == [(0, 3), (5, 5)]
        outer.finished()
        assert [(task.completed, task.total) for task in shown.tasks] == [(1, 3)]
    assert progress._shown.get() is None and "a sentence" in capsys.readouterr().err


def test_what_raises_inside_takes_its_bar_with_it(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm")
    with progress.watching(1):
        shown = progress._shown.get()
        with pytest.raises(ValueError), progress.watching(2):
            raise ValueError
        assert isinstance(shown, Progress) and len(shown.tasks) == 1
    assert progress._shown.get() is None


def test_where_stderr_is_no_terminal_each_stage_is_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    with progress.watching(2) as outer:
        outer.doing("probes", "one")
        outer.finished()
        outer.doing("kernels", "two")
        with progress.watching(9) as inner:
            inner.doing("campaign", "problem 1")
            inner.finished()
            inner.say("a sentence")
    assert capsys.readouterr().err == "probes: 0 of 2 done\nkernels: 1 of 2 done\na sentence\n"


def test_a_long_stage_is_a_line_every_half_minute(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    now = iter(range(0, 1000, 20))  # each look at the clock is 20 s after the one before
    monkeypatch.setattr(progress.time, "monotonic", lambda: float(next(now)))
    with progress.watching(9) as watcher:
        for _ in range(4):
            watcher.doing("compiling", "a kernel")
            watcher.finished()
    lines = capsys.readouterr().err.splitlines()
    assert lines[0] == "compiling: 0 of 9 done" and "compiling: 2 of 9 done" in lines and len(lines) < 5
