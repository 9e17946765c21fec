"""Which constants of a profile would change a pick, and by how much: what it was worth to measure them.

Each is multiplied by itself, by eighths of an octave up to twice and down to half, until another candidate is picked.
What timings say of predictions stays as it is.
"""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from attention.choose.candidates import Candidate
from attention.choose.constants import scaled
from attention.choose.prediction import Prediction
from attention.variant import Config
from microbench.results.profile import Profile

FACTORS = tuple(2 ** (step / 8) for step in range(-8, 9) if step)


@dataclass(frozen=True)
class Turn:
    """The smallest factor on a constant, of FACTORS, that changes the pick; and to what."""

    constant: str
    factor: float
    variant: str
    config: Config

    def __str__(self) -> str:
        config = f" {self.config}" if self.config.values else ""
        return f"{self.constant} times {self.factor:.2f} ({self.variant}{config})"


def turns(profile: Profile, names: Iterable[str], pick: Callable[[Profile], Candidate]) -> tuple[Turn, ...]:
    """Those of `names` that change what `pick` picks, upwards and downwards, the least change first."""
    now = pick(profile)
    found: list[Turn] = []
    for name in names:
        for upwards in (True, False):
            for factor in sorted((each for each in FACTORS if (each > 1) == upwards), key=_octaves):
                other = pick(scaled(profile, name, factor))
                if (other.variant, other.config) != (now.variant, now.config):
                    found.append(Turn(name, factor, other.variant, other.config))
                    break
    return tuple(sorted(found, key=lambda each: _octaves(each.factor)))


def used(prediction: Prediction) -> tuple[str, ...]:
    """The constants that a prediction rests on, by name."""
    return tuple(dict.fromkeys(name for term in prediction.terms for name in term.constants))


def told(found: tuple[Turn, ...], names: tuple[str, ...]) -> str:
    """A sentence without a full stop: what turns the pick, and how many constants do not."""
    stay = len(names) - len({each.constant for each in found})
    if not found:
        return f"within a factor of 2 none of the {len(names)} constants alone changes the pick"
    rest = f"; within a factor of 2 none of the other {stay} does" if stay else ""
    return f"another would be picked with {', or '.join(map(str, found))}{rest}"


def _octaves(factor: float) -> float:
    return abs(math.log2(factor))
