"""A prediction by published constants in the unit that kernels are designed in: cycles of 128 rows by 128 keys.

The busiest SM's time is divided by the tiles of that size that it works through, so that waves and masks cost what they
cost; how much more it has than the mean SM stands apart. A launch is no term: no source gives one.
"""

from dataclasses import dataclass

from attention.choose.prediction import Prediction, Term
from attention.choose.shares import share_of_busiest
from attention.problem import AttentionProblem
from attention.variant import Config, by_path
from microbench.published.kinds import SM_CLOCK
from microbench.results.profile import Profile

SIDE = 128  # rows, and keys


@dataclass(frozen=True)
class TermCycles:
    term: str
    phase: str
    cycles: float
    links: tuple["TermCycles", ...] = ()  # of a chain, whose cycles are their sum

    def __str__(self) -> str:
        links = ", ".join(map(str, self.links))
        return f"{self.term} {self.cycles:.0f}{f' ({links})' if links else ''}"

    @classmethod
    def of(cls, term: Term, per_unit: float) -> "TermCycles":
        links = tuple(cls.of(each, per_unit) for each in term.links)
        return cls(term.term, term.phase, term.seconds * per_unit, links)


@dataclass(frozen=True)
class Cycles:
    """What 128 rows by 128 keys take on the busiest SM at `clock_mhz`: in all, and term by term.

    waves   tiles of the busiest SM over those of the mean one
    """

    clock_mhz: float
    tile: float
    terms: tuple[TermCycles, ...]
    waves: float

    @property
    def bound(self) -> TermCycles:
        return max(self.terms, key=lambda each: each.cycles)

    @property
    def hidden(self) -> TermCycles:
        """The longest unit's work that the bound hides; a chain counts what its links' units do again."""
        behind = [
            each for each in self.terms if each.phase == self.bound.phase and each != self.bound and not each.links
        ]
        return max(behind, key=lambda each: each.cycles, default=self.bound)

    def __str__(self) -> str:
        said = ", ".join(map(str, self.terms))
        waves = f"the busiest SM has {self.waves:.3f} times the mean's work"
        unit = f"Cycles of {SIDE} rows by {SIDE} keys at {self.clock_mhz:.0f} MHz"
        return f"{unit}: {said}; {waves}; no launch, which no source gives."


def cycles_of(
    profile: Profile, problem: AttentionProblem, path: str, config: Config, prediction: Prediction
) -> Cycles | None:
    """None where the profile has no SM clock, or nothing is known of the variant's tile."""
    variant = by_path(path)
    if SM_CLOCK not in profile or variant.tile is None:
        return None
    tile, mhz = variant.tile(problem, config), profile.value(SM_CLOCK)
    share = share_of_busiest(problem, tile, profile.sm_count)
    units = share.tiles * tile.rows * tile.columns / SIDE**2
    one = share_of_busiest(problem, tile, 1)
    per_unit = mhz * 1e6 / units
    return Cycles(
        mhz,
        prediction.seconds * per_unit,
        tuple(TermCycles.of(each, per_unit) for each in prediction.terms),
        share.tiles * profile.sm_count / one.tiles,
    )
