"""Whether the functions that users call are ever slower than the best candidate, by the lines of the set of use.

ratio, on the GPU          the best candidate's seconds in a graph over the function's: at most 1 but for noise
ratio, by the wall clock   the fastest peer's call over the function's, both outside of graphs; of problems that take
                           the GPU less than eager.MOST_S

Candidates are every legal configuration of ours and every peer that was right by the oracle; seconds are medians of one
line, taken in turns. A function that fails has a ratio of 0. Of a problem that no candidate serves there is no ratio.
Pure functions: a test recomputes what they say from committed lines.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from attention.campaign import doors
from attention.campaign.posed import Posed
from attention.campaign.rows import ProblemTiming, TileTiming
from attention.compare.candidates import FLASH_4
from microbench.console.si import counted

By = Literal["GPU", "wall clock"]
BYS: tuple[By, ...] = get_args(By)
MOST, SHARE, LEAST = 0.97, 0.95, 0.90  # the ratio of most problems, how many those are, and that of all
FUNCTIONS = {doors.SDPA: "attention.sdpa", doors.FLASH: "flash_attn_func"}
WORST = 10


@dataclass(frozen=True)
class Ratio:
    """A function's speed over the best candidate's on one problem. `names` is what it chose; seconds are medians.

    `value` is 0 where the function failed, which `failure` says. `graphed`: its call was captured; else its seconds on
    the GPU hold the host's as well.
    """

    posed: Posed
    use: str
    function: str
    by: By
    value: float
    names: str
    seconds: float | None
    best: str
    best_seconds: float
    failure: str | None = None
    graphed: bool = True


@dataclass(frozen=True)
class Standing:
    """Of one function by one clock: all its ratios, in the order of the lines."""

    function: str
    by: By
    ratios: tuple[Ratio, ...]

    @property
    def share(self) -> float:
        """Of the problems that reach MOST."""
        return sum(each.value >= MOST for each in self.ratios) / len(self.ratios)

    @property
    def least(self) -> float:
        return min(each.value for each in self.ratios)

    @property
    def met(self) -> bool:
        return self.share >= SHARE and self.least >= LEAST

    def __str__(self) -> str:
        """One line."""
        said = "met" if self.met else "not met"
        return (
            f"{self.function}, {self.by}: {self.share:.1%} of {len(self.ratios)} at least {MOST} (asked {SHARE:.0%}), "
            f"the least {self.least:.3f} (asked {LEAST:.2f}): {said}"
        )


@dataclass(frozen=True)
class Verdict:
    """`missing` are problems of the draw that no line is of; `lacks` what was not asked, a sentence each."""

    standings: tuple[Standing, ...]
    missing: tuple[str, ...]
    lacks: tuple[str, ...]

    @property
    def met(self) -> bool:
        """Whether every ratio is as asked, on every problem that was drawn."""
        return bool(self.standings) and not self.missing and all(each.met for each in self.standings)

    @property
    def worst(self) -> tuple[Ratio, ...]:
        """The lowest ratios of all, the lowest first."""
        every = (ratio for each in self.standings for ratio in each.ratios)
        return tuple(sorted(every, key=lambda each: each.value)[:WORST])

    @property
    def lines(self) -> tuple[str, ...]:
        """The verdict in words, as it is recomputed."""
        missing = (f"not timed: {counted(len(self.missing), 'problem')} of the draw",) if self.missing else ()
        said = "never slower" if self.met else "slower, or not shown to be never slower"
        return (*map(str, self.standings), *self.lacks, *missing, said)


def verdict(lines: Iterable[ProblemTiming], drawn: Collection[str]) -> Verdict:
    """By each problem's last line; `drawn` are the texts of the problems that were to be timed."""
    last = {str(line.posed): line for line in lines}
    mine = [line for name, line in last.items() if name in drawn]
    found = [ratio for line in mine for ratio in ratios_of(line)]
    standings = tuple(
        Standing(function, by, of)
        for function in FUNCTIONS.values()
        for by in BYS
        if (of := tuple(each for each in found if (each.function, each.by) == (function, by)))
    )
    return Verdict(standings, tuple(name for name in drawn if name not in last), _lacks(mine))


def ratios_of(line: ProblemTiming) -> tuple[Ratio, ...]:
    """Of each function that was asked, by each clock."""
    others = [tile for tile in line.tiles if tile.seconds and not tile.is_door]
    if not others:
        return ()
    best = min(others, key=lambda tile: tile.median)
    eager = [(tile, seconds) for tile in line.tiles if tile.is_peer and (seconds := tile.eager_median) is not None]
    found: list[Ratio] = []
    for door in (tile for tile in line.tiles if tile.is_door):
        found.append(_ratio(line, door, "GPU", door.median if door.seconds else None, best, best.median))
        if eager:
            other, seconds = min(eager, key=lambda pair: pair[1])
            found.append(_ratio(line, door, "wall clock", door.eager_median, other, seconds))
    return tuple(found)


def _ratio(
    line: ProblemTiming, door: TileTiming, by: By, seconds: float | None, best: TileTiming, best_seconds: float
) -> Ratio:
    value = best_seconds / seconds if seconds else 0.0
    failure = None if seconds else door.failure or "it was not timed"
    who = FUNCTIONS[door.variant], by
    return Ratio(
        line.posed,
        line.use or "",
        *who,
        value,
        door.names or "",
        seconds,
        best.name,
        best_seconds,
        failure,
        door.captured,
    )


def _lacks(lines: Sequence[ProblemTiming]) -> tuple[str, ...]:
    """What the lines do not say, and would have to."""
    rivals = [tile for line in lines for tile in line.tiles if tile.variant == FLASH_4]
    without = sum(not any(tile.variant == FLASH_4 for tile in line.tiles) for line in lines)
    alone = sum(not ratios_of(line) for line in lines)
    failed = len(rivals) if rivals and not any(tile.seconds for tile in rivals) else 0
    reason = Counter(tile.failure for tile in rivals).most_common(1)[0][0] if failed else ""
    said = (
        (without, f"FlashAttention-4 was not asked on {without} of {counted(len(lines), 'problem')}"),
        (failed, f"FlashAttention-4 ran on none of {counted(failed, 'problem')}, most often as: {reason}"),
        (alone, f"no candidate serves {alone} of {counted(len(lines), 'problem')}"),
    )
    return tuple(text for count, text in said if count)
