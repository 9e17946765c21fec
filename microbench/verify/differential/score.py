"""How far a GPU's results are from the emulator's, also where only a digest and a sample of the latter are at hand."""

import hashlib
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

SAMPLE = 256  # results of a chunk that a file keeps
Array = NDArray[Any]


@dataclass(frozen=True)
class Score:
    """Results beyond the tolerance, and the worst error; not finite where a result is no number."""

    differing: int = 0
    worst: float = 0.0

    def __add__(self, other: "Score") -> "Score":
        return Score(self.differing + other.differing, max(self.worst, other.worst))


@dataclass(frozen=True)
class Kept:
    """What a file keeps of the emulator's results."""

    digest: Array
    sample: Array


def kept(results: Array) -> Kept:
    """A digest of all, and the same few wherever it is drawn."""
    # Minus zero is zero: tensor cores and the emulator may sign it differently.
    same = results + results.dtype.type(0)
    digest = np.frombuffer(hashlib.sha256(same.tobytes()).digest(), np.uint8)
    return Kept(digest, results[np.random.default_rng(0).permutation(results.size)[:SAMPLE]])


def score(found: Array, expected: Array | Kept, tolerance: float) -> Score:
    """Compare; with a tolerance, or where digests differ, only the sample is at hand of what a file kept."""
    if isinstance(expected, Kept):
        here = kept(found)
        if not tolerance and np.array_equal(here.digest, expected.digest):
            return Score()
        drawn = score(here.sample, expected.sample, tolerance)
        return drawn if tolerance else Score(max(1, drawn.differing), drawn.worst)
    # What is no number differs, unless it is so on both sides.
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
