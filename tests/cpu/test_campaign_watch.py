"""A candidate that does not end is named, noted for the next call, and ends the process; one that ends does nothing."""

import os
import threading
from pathlib import Path

import pytest

from attention.campaign import lost
from attention.campaign.posed import parse
from attention.campaign.watch import Watch
from microbench import paths
from microbench.errors import DeviceError

POSED = parse("features 1 2 2 70 70 64 bf16 bias")
HANGS, ENDS = "sm90a/forward/hangs tile_keys=128", "peer/ends"


@pytest.fixture
def left(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[int]:
    """The codes that the process was left with."""
    codes: list[int] = []
    monkeypatch.setattr(paths, "cache", lambda: tmp_path)
    monkeypatch.setattr(os, "_exit", codes.append)
    return codes


def until_left(codes: list[int]) -> None:
    """As a GPU that works for ever would be waited for."""
    waited = threading.Event()
    for _ in range(500):
        if codes:
            return
        waited.wait(0.01)


def test_a_candidate_that_does_not_end_is_left_out_of_the_next_call(
    left: list[int], capsys: pytest.CaptureFixture[str]
) -> None:
    with Watch(POSED, seconds=0.05).over(HANGS):
        until_left(left)
    assert left == [DeviceError.exit_code]
    assert capsys.readouterr().err.startswith(f"{HANGS} lost the GPU on {POSED}: it did not end within 0 s.")
    assert lost.known(POSED) == {HANGS: "it lost the GPU: it did not end within 0 s"}


def test_of_calls_in_turns_the_one_that_runs_is_named(left: list[int]) -> None:
    watch = Watch(POSED, seconds=0.2)
    with watch.over():
        watch.noting(ENDS, lambda: None)()
        watch.noting(HANGS, lambda: until_left(left))()
    assert left == [DeviceError.exit_code] and [*lost.known(POSED)] == [HANGS]


def test_nothing_happens_to_who_ends(left: list[int]) -> None:
    watch = Watch(POSED, seconds=0.05)
    with watch.over(ENDS):
        assert watch.noting(ENDS, lambda: 7)() == 7
    threading.Event().wait(0.15)
    assert not left and not lost.known(POSED)
