"""One setting of a sweep's axes: what a probe is run at; and the curves over such points."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

Value = int | float | str
# A map: a value for each SM, or a row of them for each partner; None where there is none.
Values = tuple[float | None, ...] | tuple[tuple[float | None, ...], ...]


@dataclass(frozen=True)
class Point:
    """One setting of every axis, hashable and ordered as the axes are declared."""

    values: tuple[tuple[str, Value], ...] = ()

    def __getitem__(self, axis: str) -> Any:
        for name, value in self.values:
            if name == axis:
                return value
        raise KeyError(axis)

    def matches(self, **wanted: Value) -> bool:
        """True where every named axis has the named value."""
        return all(self[name] == value for name, value in wanted.items())

    def __str__(self) -> str:
        return " ".join(f"{name}={value}" for name, value in self.values) or "-"


Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Curves:
    """values[c, p]: what campaign c measured at points[p]; NaN where that row failed."""

    points: tuple[Point, ...]
    values: Floats


@dataclass(frozen=True)
class Reduced:
    """One value per campaign, the points that gave it (none: the whole curve did), and how sure the sweep makes us."""

    per_campaign: Floats
    points: tuple[Point, ...] = ()
    label: str = "measured"
    flags: tuple[str, ...] = field(default=())


Reducer = Callable[[Curves], Reduced]


class NoValue(ValueError):
    """The curve does not hold the asked value: too few points, or no plateau."""
