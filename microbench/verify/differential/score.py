"""How far a GPU's results are from the emulator's."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]


@dataclass(frozen=True)
class Score:
    """Results beyond the tolerance, and the worst error; not finite where a result is no number."""

    differing: int = 0
    worst: float = 0.0

    def __add__(self, other: "Score") -> "Score":
        return Score(self.differing + other.differing, max(self.worst, other.worst))


@dataclass(frozen=True)
class Held:
    """One case on a GPU, the image that ran and its compiler; or the compiler's word that there is none."""

    score: Score = Score()
    cubin: str = ""
    nvrtc: str = ""
    unsupported: str = ""


def score(found: Array, expected: Array, tolerance: float) -> Score:
    """Compare. What is no number differs, unless it is so on both sides."""
    with np.errstate(invalid="ignore"):
        same = (found == expected) | (np.isnan(found) & np.isnan(expected))
        off = np.where(same, 0.0, _deviation(found, expected))
    worst = float(off.max(initial=0.0))
    return Score(int(np.count_nonzero(~(off <= tolerance))), np.inf if np.isnan(worst) else worst)


def _deviation(found: Array, expected: Array) -> Array:
    """Error of each result, relative to those above one; of bits, their distance."""
    wide = (found.astype(np.float64), expected.astype(np.float64))
    off: Array = np.abs(wide[0] - wide[1]) / np.maximum(1.0, np.abs(wide[1]))
    return off
