"""A number of the models with its derivation: choose.coefficients.table is that of all."""

from typing import Literal, NamedTuple


class Coefficient(NamedTuple):
    """`why` derives the value."""

    value: float
    kind: Literal["count", "published", "rule"]
    why: str
