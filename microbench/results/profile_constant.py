"""One constant of a profile: what was measured, how sure it is, and what speaks against it."""

import math
from typing import Literal

from microbench.bounds import LOOP_LIMITED
from microbench.files import Frozen
from microbench.probe import REACHED, Governor, breaks
from microbench.results.record import DISTURBANCES

# What the second method's constants add to the first one's name.
TWIN_SUFFIX = "_numba"

# Beyond this factor an interval is too wide for a choice to rest on its value. A constant that is off by it makes a
# prediction off by as much, and the kernel picked by that runs at 1/1.18 = 0.85 of the better one's speed: the least
# that attention promises of any single call. Of the shipped profiles' constants, measured on machines that were idle,
# the worst lies at 1.11 (the share that a virtual machine has of its L3).
WIDE = 1.18

Label = Literal["measured", "lower bound", "published"]
PUBLISHED: Label = "published"
FEW = "few campaigns: "  # before their number
BELOW_DOCUMENTED = f"below {100 * REACHED:.0f} % of the documented rate"
SMALLEST, LARGEST = 1e-30, 1e30  # of a constant, in whatever unit


class AtClock(Frozen):
    """What other campaigns gave at another SM clock."""

    clock_mhz: float
    value: float
    low: float
    high: float
    n: int


class OfBoard(Frozen):
    """What one board of several gave; `board` is the begin of its UUID's hash."""

    board: str
    value: float
    n: int


class ProfileConstant(Frozen):
    """A value, and the least and the most of `n` campaigns.

    'lower bound' where the sweep never went flat, or where the value is far below a documented rate; 'published' where
    others gave it and nobody measured it here.

    governed_by 'power' where power set the clock meanwhile, 'host' where the time is the host's (probe.Metric)
    clocks_mhz  the lowest and the highest SM clock at which it was measured: within one step of the clock, unless the
                quantity is the same at every clock, or power sets the clock
    beside      what was measured at other clocks, and did not agree
    boards      where several boards of a kind were measured: each one's median
    sources     of a published constant: ids of data/published/sources.csv, the best one's first
    basis       of a published constant: whose figure it is, and how it became this constant
    """

    name: str
    value: float
    low: float
    high: float
    unit: str
    n: int
    runs: tuple[str, ...]
    probe: str
    method: str
    label: Label = "measured"
    bound_lower: float | None = None
    bound_upper: float | None = None
    bound_why: str = "unknown"
    governed_by: Governor | None = None
    clocks_mhz: tuple[float, float] | None = None
    beside: tuple[AtClock, ...] = ()
    boards: tuple[OfBoard, ...] = ()
    flags: tuple[str, ...] = ()
    sources: tuple[str, ...] | None = None
    basis: str | None = None

    @property
    def only_at_least(self) -> str | None:
        """Why it is a lower bound, or None."""
        if self.label != "lower bound":
            return None
        if BELOW_DOCUMENTED in self.flags:
            return f"it lies {BELOW_DOCUMENTED}"
        return LOOP_LIMITED if LOOP_LIMITED in self.flags else "its sweep was not flat at the end"

    @property
    def disturbances(self) -> tuple[str, ...]:
        """What else used the device while most of its rows were measured: 'busy', 'stolen', 'clock-moved'."""
        return tuple(flag for flag in self.flags if flag in DISTURBANCES)

    @property
    def wide(self) -> bool:
        """True where the campaigns disagree: not even half of them lie within WIDE of the value.

        The value is their median, so half of them lie between it and either end. The nearer end counts: one campaign
        that something disturbed moves one end as far as it likes, and hardly the median.
        """
        value, low, high = self.value, self.low, self.high
        if not 0 < low <= value <= high:
            return not low == value == high
        return high > WIDE * value and value > WIDE * low

    @property
    def lesser(self) -> bool:
        """True where it comes from a quick, short or unfinished run; quiet.py flags those."""
        return any(flag in ("quick", "unfinished") or flag.endswith(" campaigns") for flag in self.flags)

    @property
    def doubtful(self) -> bool:
        """True where no choice may rest on it: it was measured beside other work, or its interval is wide."""
        return self.wide or bool(self.flags and self.disturbances)

    @property
    def fault(self) -> str | None:
        """Why it cannot be right: not positive, outside of its interval or of its physical bound."""
        if not (math.isfinite(self.value) and SMALLEST <= self.value <= LARGEST):
            return f"value is {self.value:g}, and no rate, size or latency is"
        if not self.low <= self.value <= self.high:
            return f"its interval [{self.low:g}, {self.high:g}] does not hold its value {self.value:g}"
        if breaks(self.value, self.bound_lower, self.bound_upper):
            return f"{self.value:g} {self.unit} breaks its bound ({self.bound_why})"
        return None
