"""One setting of a sweep's axes: what a probe is run at, and what a curve is drawn over."""

from dataclasses import dataclass
from typing import Any

Value = int | float | str


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
