"""A constant as a prediction uses it, with the interval that it was measured in and where it comes from."""

from dataclasses import dataclass


@dataclass(frozen=True)
class ConstantUsed:
    name: str
    value: float
    low: float
    high: float
    unit: str
    label: str
