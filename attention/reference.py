"""The float64 oracle, and how far a result may be from it.

A result is right when every NaN and infinity stands where the oracle has one, and its largest error is at most twice
that of a low-precision result of the same problem (torch's own) plus one rounding unit at the output's size.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from attention.errors import ProblemError

Array = npt.NDArray[np.float64]

# Distance from 1 to the next number: 2**-mantissa bits.
ROUNDING_UNIT = {"float16": 2.0**-10, "bfloat16": 2.0**-7, "float32": 2.0**-23, "float64": 2.0**-52}
ERROR_FACTOR = 2.0


def attention(
    query: Any, key: Any, value: Any, *, causal: bool = False, scale: float | None = None, mask: Any = None
) -> tuple[Array, Array]:
    """Attention of arrays (..., H, S, D) in float64: out (..., Hq, Sq, Dv) and lse (..., Hq, Sq), natural logarithm.

    Fewer key than query heads are shared by groups. `mask` is boolean (True: may be seen) or added to the scores, and
    broadcasts to (..., Hq, Sq, Skv). Causal is top-left. A query that sees nothing gives 0 and -inf.
    """
    q, k, v = (np.asarray(array, dtype=np.float64) for array in (query, key, value))
    if q.shape[-3] % k.shape[-3]:
        raise ProblemError(f"{q.shape[-3]} query heads cannot share {k.shape[-3]} key heads.")
    group = q.shape[-3] // k.shape[-3]
    k, v = np.repeat(k, group, axis=-3), np.repeat(v, group, axis=-3)
    scores = q @ np.swapaxes(k, -1, -2) * (1.0 / math.sqrt(q.shape[-1]) if scale is None else scale)
    if causal:
        seen = np.tri(q.shape[-2], k.shape[-2], dtype=bool)
        scores = np.where(seen, scores, -np.inf)
    if mask is not None:
        mask = np.asarray(mask)
        scores = np.where(mask, scores, -np.inf) if mask.dtype == np.bool_ else scores + mask
    with np.errstate(divide="ignore", invalid="ignore"):
        highest = scores.max(axis=-1, keepdims=True, initial=-np.inf)
        weights = np.exp(scores - np.where(np.isneginf(highest), 0.0, highest))
        sums = weights.sum(axis=-1, keepdims=True)
        out = np.where(sums == 0.0, 0.0, (weights @ v) / np.where(sums == 0.0, 1.0, sums))
        lse = np.where(np.isneginf(highest), -np.inf, highest + np.log(sums))
    return out, lse[..., 0]


@dataclass(frozen=True)
class Comparison:
    """How a result differs from the oracle. Errors are absolute, over the places where both are finite."""

    positions_agree: bool  # NaN, +inf and -inf stand at the same places
    error: float
    rms: float
    low_error: float
    rounding_unit: float

    @property
    def allowed(self) -> float:
        """The largest error that the rule lets pass."""
        return ERROR_FACTOR * self.low_error + self.rounding_unit

    @property
    def ok(self) -> bool:
        """True where positions agree and the error is within the rule; a NaN error never passes."""
        return self.positions_agree and self.error <= self.allowed

    def __str__(self) -> str:
        places = "" if self.positions_agree else "NaN or inf at other places than the oracle; "
        return f"{places}error {self.error:.3g}, allowed {self.allowed:.3g} (rms {self.rms:.3g})"


def compare(result: Any, oracle: Any, low: Any, dtype: str) -> Comparison:
    """Judge `result` by the oracle and by `low`, another computation of the same in the precision of `dtype`."""
    got, want, other = (np.asarray(array, dtype=np.float64) for array in (result, oracle, low))
    if got.shape != want.shape:
        raise ProblemError(f"The result has shape {got.shape} and the oracle {want.shape}; compare the same problem.")
    places = all(np.array_equal(test(got), test(want)) for test in (np.isnan, np.isposinf, np.isneginf))
    finite = np.isfinite(got) & np.isfinite(want)
    error = np.abs(np.subtract(got, want, where=finite, out=np.zeros_like(want)))
    both = finite & np.isfinite(other)
    low_error = np.abs(np.subtract(other, want, where=both, out=np.zeros_like(want)))
    largest = float(np.abs(want, where=np.isfinite(want), out=np.zeros_like(want)).max(initial=0.0))
    return Comparison(
        positions_agree=places,
        error=float(error.max(initial=0.0)),
        rms=float(np.sqrt(np.mean(error**2))) if error.size else 0.0,
        low_error=float(low_error.max(initial=0.0)),
        rounding_unit=ROUNDING_UNIT[dtype] * largest,
    )
