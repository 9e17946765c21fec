"""Why a published figure and our highest differ by more than a quarter: what would have to change, and by how much.

Our highest has every term behind the longest at the boost clock. A slower kernel runs at a lower clock, or leaves
cycles open beside its bound, or both: each alone is a number that somebody can check. Of the clock one thing is known,
what a board falls to under attention; the rest is said to be unknown.
"""

from dataclasses import dataclass

from attention.choose.published.cycles import Cycles
from microbench.console.si import digits, written
from microbench.published import load
from microbench.published.facts import Fact

MISS = 0.25
UNDER_ATTENTION = "clock_sm_attention_mhz"


@dataclass(frozen=True)
class Miss:
    """A published kernel beside our highest at its own shape and board.

    ratio               our highest over theirs
    seconds             what theirs takes longer, a call
    needed_mhz          the clock at which our bound takes as long as theirs
    open_cycles         what theirs takes more than ours for 128 rows by 128 keys, at our clock
    power_mhz, source   what the board's clock falls to under attention, and who says so
    """

    ratio: float
    seconds: float
    ours: Cycles
    needed_mhz: float
    open_cycles: float
    power_mhz: float | None = None
    source: str = ""

    def __str__(self) -> str:
        if self.ratio < 1:
            return (
                f"Theirs is faster than our bound allows: {self.ours.bound.term} would have to take "
                f"{self.ours.tile * self.ratio:.0f} cycles instead of {self.ours.tile:.0f}, or the clock be "
                f"{self.needed_mhz:.0f} MHz."
            )
        launch = f"A launch is no term: the miss is {written(self.seconds, 's')} a call."
        return f"{self._what_would_do()} {self._known()} {launch}"

    def _what_would_do(self) -> str:
        hidden = self.ours.hidden
        theirs = self.ours.tile + self.open_cycles
        return (
            f"128 rows by 128 keys take theirs {theirs:.0f} cycles at {self.ours.clock_mhz:.0f} MHz, ours at least "
            f"{self.ours.tile:.0f}. By the clock alone it would be {self.needed_mhz:.0f} MHz; by overlap alone "
            f"{self.open_cycles:.0f} cycles stand open, {digits(self.open_cycles / hidden.cycles)} of all "
            f"{hidden.cycles:.0f} of {hidden.term}."
        )

    def _known(self) -> str:
        if self.power_mhz is None:
            return "No source gives the clock of this board under attention."
        falls = self.ours.clock_mhz / self.power_mhz
        clock = f"Known: under sustained attention the clock falls to {self.power_mhz:.0f} MHz ({self.source})"
        said = f"{clock}, a factor of {digits(falls)}"
        if falls >= self.ratio:
            return f"{said}, more than the whole {digits(self.ratio)}."
        left = (self.ratio / falls - 1) * self.ours.tile
        share = left / self.ours.hidden.cycles
        return (
            f"{said} of the {digits(self.ratio)}; at that clock {left:.0f} cycles stand open, {digits(share)} of "
            f"{self.ours.hidden.term}, and no source says where."
        )


def miss(board: str, theirs_seconds: float, ours_seconds: float, ours: Cycles) -> Miss | None:
    """None where they differ by no more than MISS."""
    ratio = theirs_seconds / ours_seconds
    if abs(ratio - 1) <= MISS:
        return None
    power = _under_attention(board)
    return Miss(
        ratio,
        theirs_seconds - ours_seconds,
        ours,
        ours.clock_mhz / ratio,
        (ratio - 1) * ours.tile,
        power.value if power else None,
        power.source if power else "",
    )


def _under_attention(board: str) -> Fact | None:
    facts = (fact for fact in load().facts if fact.quantity == UNDER_ATTENTION and fact.gpu == board and fact.trusted)
    return next(facts, None)
