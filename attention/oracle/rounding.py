"""How far a float32 result may be from the exact one: a bound carried along with the values, operation by operation.

The analysis is Wilkinson's running one (Higham, Accuracy and Stability of Numerical Algorithms, section 3.3). It holds
for any order of summation, and so for every kernel, BLAS and CPU. A sum of n terms is charged min(n, 8 sqrt(n)) units:
n is the worst case, and 8 sqrt(n) is exceeded with a probability below 2 n exp(-32) where rounding errors are
independent (Higham and Mary, 2019, theorem 2.4).
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]

UNIT = {"float32": 2.0**-24, "float64": 2.0**-53}  # half the distance from 1 to the next number
SPREAD = 8.0
# Exponential and logarithm: glibc, SVML, SLEEF and our polynomial stay within one unit in the last place, which is two
# of UNIT; as many again for the change of base.
FUNCTION_UNITS = 4.0
# Roundings of a score beside its sum: the scale itself, its product with log2(e), and the product with the query.
SCALING_UNITS = 3.0


@dataclass(frozen=True)
class Rounded:
    """Exact values, and the most that a computation in units of `unit` may be away from each of them."""

    value: Array
    error: Array
    unit: float

    @classmethod
    def exact(cls, array: Any, dtype: str = "float32") -> "Rounded":
        """Inputs, which are what they are; computed with in `dtype` (float32 or float64)."""
        value = np.asarray(array, dtype=np.float64)
        return cls(value, np.zeros_like(value), UNIT[dtype])

    @property
    def largest(self) -> Array:
        """The largest magnitude that a computed value may have."""
        return np.abs(self.value) + self.error

    @property
    def mT(self) -> "Rounded":
        return Rounded(np.swapaxes(self.value, -1, -2), np.swapaxes(self.error, -1, -2), self.unit)

    def __matmul__(self, other: "Rounded") -> "Rounded":
        magnitude = self.largest @ other.largest
        carried = magnitude - np.abs(self.value) @ np.abs(other.value)
        units = growth(self.value.shape[-1], self.unit)
        return Rounded(self.value @ other.value, carried + units * magnitude, self.unit)

    def __mul__(self, other: "Rounded") -> "Rounded":
        magnitude = self.largest * other.largest
        carried = magnitude - np.abs(self.value) * np.abs(other.value)
        return Rounded(self.value * other.value, carried + self.unit * magnitude, self.unit)

    def __sub__(self, other: "Rounded") -> "Rounded":
        value, carried = self.value - other.value, self.error + other.error
        return Rounded(value, carried + self.unit * (np.abs(value) + carried), self.unit)

    def scaled(self, factor: float) -> "Rounded":
        """Times a constant that is itself rounded."""
        error = abs(factor) * (self.error + SCALING_UNITS * self.unit * self.largest)
        return Rounded(self.value * factor, error, self.unit)

    def sum(self, axis: int | tuple[int, ...]) -> "Rounded":
        """Summed over axes that stay, with length 1."""
        value, magnitude = self.value.sum(axis, keepdims=True), self.largest.sum(axis, keepdims=True)
        units = growth(self.value.size // max(1, value.size), self.unit)
        return Rounded(value, self.error.sum(axis, keepdims=True) + units * magnitude, self.unit)


def growth(terms: int, unit: float) -> float:
    """The relative error of a sum of so many terms, as a share of the sum of their magnitudes."""
    return min(terms, SPREAD * math.sqrt(terms)) * unit


def attention(
    query: Rounded, key: Rounded, value: Rounded, *, scale: float | None = None, seen: Any = None
) -> tuple[Rounded, Rounded, Rounded]:
    """Attention of (..., S, D) with equal heads: weights (..., Sq, Skv), out (..., Sq, Dv) and lse (..., Sq, 1).

    `seen` is boolean and broadcasts to the scores. A query that sees nothing gives 0 and -inf, which nobody rounds.
    """
    unit, keys = query.unit, key.value.shape[-2]
    scale = 1.0 / math.sqrt(query.value.shape[-1]) if scale is None else scale
    scores = (query @ key.mT).scaled(scale)
    logits = scores.value if seen is None else np.where(seen, scores.value, -np.inf)
    highest = logits.max(axis=-1, keepdims=True)
    blind = np.isneginf(highest)
    below = logits - np.where(blind, 0.0, highest)
    distance = np.where(np.isfinite(below), np.abs(below), 0.0)
    # Whatever maximum a kernel subtracts cancels in the quotient; its difference from the score is rounded.
    shift = scores.error + unit * (2 * distance + FUNCTION_UNITS)
    powers = np.exp(below)
    with np.errstate(over="ignore"):
        parts = Rounded(powers, np.exp(below + shift) - powers, unit)
    # Once more for each key: an online softmax rescales its sums whenever the maximum rises.
    rescaled = 1 + growth(keys, unit)
    total, out = parts.sum(-1), parts @ value
    sums = np.where(blind, 1.0, total.value)
    total_error, out_error = (each.error * rescaled + growth(keys, unit) * each.largest for each in (total, out))
    lse = np.log(sums) + np.where(blind, 0.0, highest)
    # Beyond a relative error of 1 nothing is known of a quotient or a logarithm.
    share = total_error / sums
    known = share < 1
    lse_error = np.where(known, -np.log1p(-np.where(known, share, 0.0)), np.inf)
    lse_error = lse_error + unit * FUNCTION_UNITS * (np.abs(lse) + np.abs(np.log(sums)))
    quotient = out.value / sums
    margin = np.where(known, sums - total_error, 1.0)
    out_error = np.where(known, (out_error + np.abs(quotient) * total_error) / margin, np.inf)
    weights = powers / sums
    # A backward pass computes a weight again, as the exponential of score minus lse.
    shift = shift + lse_error + unit * (distance + np.abs(lse))
    with np.errstate(over="ignore"):
        weight_error = np.exp(below + shift) / sums - weights
    return (
        Rounded(weights, weight_error, unit),
        Rounded(quotient, out_error + 2 * unit * (np.abs(quotient) + out_error), unit),
        Rounded(np.where(blind, -np.inf, lse), lse_error, unit),
    )


def gradients(
    query: Rounded, key: Rounded, value: Rounded, out_grad: Rounded, *, scale: float, seen: Any = None
) -> tuple[Rounded, Rounded, Rounded, Rounded]:
    """Out, and the gradients of query, key and value by a backward pass that recomputes weights from lse."""
    weights, out, _ = attention(query, key, value, scale=scale, seen=seen)
    of_scores = weights * (out_grad @ value.mT - (out_grad * out).sum(-1))
    of_query, of_key = (of_scores @ key).scaled(scale), (of_scores.mT @ query).scaled(scale)
    return out, of_query, of_key, weights.mT @ out_grad
