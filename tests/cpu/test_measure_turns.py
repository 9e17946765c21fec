"""Whole calls in turns on a CPU: each round in another order, measured again where the machine was not quiet."""

from collections.abc import Iterable, Iterator
from typing import Any

import pytest

from microbench.measure import turns
from microbench.measure.turns import Rounds, in_turns

MOST = Rounds().most


class Scripted:
    """A CPU of which clock and disturbances are known, reading by reading; the last ones stay."""

    def __init__(self, mhz: Iterable[float] = (3000.0,), flags: Iterable[tuple[str, ...]] = ((),)) -> None:
        self.pool, self._mhz, self._flags = self, self._staying(mhz), self._staying(flags)

    @staticmethod
    def _staying(values: Iterable[Any]) -> Iterator[Any]:
        for value in values:
            yield value
        while True:
            yield value

    def clock_mhz(self) -> float:
        return float(next(self._mhz))

    def flags(self) -> tuple[str, ...]:
        return tuple(next(self._flags))


def time_these(device: Scripted, names: str = "ab", seed: str = "run") -> tuple[dict[str, Any], list[str]]:
    told: list[str] = []
    found = in_turns(device, {each: (lambda each=each: told.append(each)) for each in names}, seed)  # type: ignore[arg-type, misc]
    return found, told[2 * len(names) :]


def test_every_call_is_timed_as_often_in_an_order_drawn_anew_each_round() -> None:
    found, told = time_these(Scripted(), "abcdef")
    rounds = ["".join(told[at : at + 6]) for at in range(0, len(told), 6)]
    assert len(rounds) == MOST and {len(each.seconds) for each in found.values()} == {MOST}
    assert all(sorted(each) == list("abcdef") for each in rounds) and len(set(rounds)) > 1
    assert time_these(Scripted(), "abcdef")[1] == told != time_these(Scripted(), "abcdef", "another")[1]


def test_a_quiet_run_says_its_clock() -> None:
    found, told = time_these(Scripted((2990.0, 3010.0)))
    assert {(each.clock_mhz, each.flags) for each in found.values()} == {(3000.0, ())}
    assert len(told) == 2 * MOST


@pytest.mark.parametrize(
    ("device", "runs", "flags"),
    [
        (Scripted((3000.0, 2000.0, 2000.0)), 2, ()),  # the clock has moved, and then stays
        (Scripted(flags=((), ("busy",), (), ())), 2, ()),
        (Scripted(flags=((), ("busy",), (), ("stolen",), ())), 3, ()),
        (Scripted(flags=(("busy",),)), 3, ("busy",)),
    ],
)
def test_a_disturbed_run_is_made_again_and_says_so_if_it_stays_disturbed(
    device: Scripted, runs: int, flags: tuple[str, ...]
) -> None:
    found, told = time_these(device)
    assert {each.flags for each in found.values()} == {flags}
    assert len(told) == 2 * MOST * runs and len(found["a"].seconds) == MOST


@pytest.fixture
def call(monkeypatch: pytest.MonkeyPatch) -> Any:
    """A call that takes so many seconds of a clock of its own."""
    now = [0.0]
    monkeypatch.setattr(turns.time, "perf_counter", lambda: now[0])

    def of(seconds: float) -> Any:
        return lambda: now.append(now.pop() + seconds)

    return of


def test_a_long_call_is_timed_less_often_and_never_less_than_five_times(call: Any) -> None:
    found = in_turns(Scripted(), {"a": call(0.2), "b": call(0.001)}, "run")  # type: ignore[arg-type]
    assert found["a"].seconds == pytest.approx([0.2] * 10) and found["b"].seconds == pytest.approx([0.001] * 10)
    assert len(in_turns(Scripted(), {"a": call(9.0)}, "run")["a"].seconds) == Rounds().fewest  # type: ignore[arg-type]


def test_a_burst_is_of_so_many_calls_as_the_quickest_makes_in_its_time(call: Any) -> None:
    rounds = Rounds(fewest=3, most=9, longest_s=10.0, burst_s=1.0)
    found = in_turns(Scripted(), {"a": call(0.25), "b": call(0.5)}, "run", rounds)  # type: ignore[arg-type]
    assert {each.burst for each in found.values()} == {4}
    assert found["a"].seconds == pytest.approx([0.25] * 5) and found["b"].seconds == pytest.approx([0.5] * 5)
