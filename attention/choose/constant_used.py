"""A constant as a prediction uses it, with the interval that it was measured in and where it comes from."""

from dataclasses import dataclass

from microbench.results.profile_constant import ProfileConstant


@dataclass(frozen=True)
class ConstantUsed:
    """`label` says what it rests on."""

    name: str
    value: float
    low: float
    high: float
    unit: str
    label: str

    @classmethod
    def of(cls, constant: ProfileConstant, label: str | None = None) -> "ConstantUsed":
        return cls(constant.name, constant.value, constant.low, constant.high, constant.unit, label or constant.label)
