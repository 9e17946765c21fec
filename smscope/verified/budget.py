"""How long one call may take: '9m'."""

import re
import time
from collections.abc import Callable
from dataclasses import dataclass

from microbench.errors import InputError

SECONDS = {"s": 1.0, "m": 60.0, "h": 3600.0}
_WORD = re.compile(r"(\d+(?:\.\d+)?)([smh])")


@dataclass(frozen=True)
class Budget:
    """Seconds for one call from `began` on, by `clock`; None is as long as it takes."""

    seconds: float | None
    began: float
    clock: Callable[[], float] = time.monotonic

    def fits(self, usual_s: float) -> bool:
        """Whether what usually takes so long would end within it, begun now."""
        return self.seconds is None or self.clock() - self.began + usual_s <= self.seconds


def parsed(text: str) -> float:
    """Seconds of '90s', '9m' or '1.5h'. Raises InputError."""
    found = _WORD.fullmatch(text.strip())
    if found is None or not float(found[1]):
        raise InputError(f"--budget {text!r} is no time; give a number above 0 and s, m or h: 90s, 9m, 1h.")
    return float(found[1]) * SECONDS[found[2]]


def started(text: str | None, clock: Callable[[], float] = time.monotonic) -> Budget:
    """A budget that begins now. Raises InputError."""
    return Budget(None if text is None else parsed(text), clock(), clock)


def told(seconds: float) -> str:
    """The same for people: '45 s', '9 min'."""
    return f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.0f} min"
