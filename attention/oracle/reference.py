"""The float64 oracle, and how far a result may be from it.

A result is right when every NaN and infinity stands where the oracle has one, and its largest error is at most twice
that of a low-precision result of the same problem (torch's own) plus one rounding unit at the output's size, or at most
the bound of rounding.py where that is given: of a few float32 sums torch's may all happen to come out nearly exact.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import reduce
from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import numpy as np
import numpy.typing as npt

from attention.errors import ProblemError
from attention.feature import At, Operand
from attention.features import FEATURES, OPERANDS

Array = npt.NDArray[np.float64]

# Distance from 1 to the next number: 2**-mantissa bits.
ROUNDING_UNIT = {"float16": 2.0**-10, "bfloat16": 2.0**-7, "float32": 2.0**-23, "float64": 2.0**-52}
ERROR_FACTOR = 2.0


def attention(query: Any, key: Any, value: Any, *, scale: float | None = None, **features: Any) -> tuple[Array, Array]:
    """Attention of arrays (..., H, S, D) in float64: out (..., Hq, Sq, Dv) and lse (..., Hq, Sq), natural logarithm.

    Fewer key than query heads are shared by groups. `features` are fields of AttentionProblem, whose docstring has the
    formulas, and operands of features, in the shapes of their axes: mask broadcasts to (..., Hq, Sq, Skv), bool (True:
    may be seen) or added to the scores; alibi are slopes (Hq,) or (..., Hq), sinks logits (Hq,). A query that sees
    nothing gives 0 and -inf, or its sink.
    """
    q, k, v = (np.asarray(array, dtype=np.float64) for array in (query, key, value))
    if q.shape[-3] % k.shape[-3]:
        raise ProblemError(f"{q.shape[-3]} query heads cannot share {k.shape[-3]} key heads.")
    group = q.shape[-3] // k.shape[-3]
    k, v = np.repeat(k, group, axis=-3), np.repeat(v, group, axis=-3)
    scores = q @ np.swapaxes(k, -1, -2) * (1.0 / math.sqrt(q.shape[-1]) if scale is None else scale)
    at = At(np.arange(q.shape[-2])[:, None], np.arange(k.shape[-2]), q.shape[-2], k.shape[-2])
    operands = {each.name: _with_every_axis(each, features.pop(each.name, None)) for each in OPERANDS}
    scores, logits = scored(np, scores, at, asked(**features), operands)
    with np.errstate(divide="ignore", invalid="ignore"):
        highest = reduce(np.maximum, logits, scores.max(axis=-1, keepdims=True, initial=-np.inf))
        base = np.where(np.isneginf(highest), 0.0, highest)
        weights = np.exp(scores - base)
        sums = sum((np.exp(logit - base) for logit in logits), start=weights.sum(axis=-1, keepdims=True))
        out = np.where(sums == 0.0, 0.0, (weights @ v) / np.where(sums == 0.0, 1.0, sums))
        lse = np.where(np.isneginf(highest), -np.inf, highest + np.log(sums))
    return out, lse[..., 0]


def asked(**fields: Any) -> SimpleNamespace:
    """What has the fields of all features. Raises TypeError for one that no feature has."""
    defaults = {name: default for feature in FEATURES for name, default in feature.fields}
    strange = [name for name in fields if name not in defaults]
    if strange:
        raise TypeError(f"No feature has a field {strange[0]!r}.")
    return SimpleNamespace(**(defaults | fields))


def scored(xp: Any, scores: Any, at: At, asked: Any, operands: Mapping[str, Any]) -> tuple[Any, list[Any]]:
    """Scaled scores as the softmax has them, and the logits (..., 1) that join it.

    Scores are (..., heads, queries, keys), of the array namespace `xp`, and operands broadcast to them or are None.
    """
    own = [[operands[operand.name] for operand in feature.operands] for feature in FEATURES]
    for feature, given in zip(FEATURES, own, strict=True):
        at = feature.where(at, *given)
    for feature, given in zip(FEATURES, own, strict=True):
        scores = feature.oracle(xp, scores, at, asked, *given)
    for feature, given in zip(FEATURES, own, strict=True):
        hidden = feature.oracle_hides(at, asked, *given)
        scores = scores if hidden is None else xp.where(hidden, -xp.inf, scores)
    logits = (given[0] for feature, given in zip(FEATURES, own, strict=True) if feature.logit)
    found = [logit for logit in logits if logit is not None]
    return scores, found if at.unused is None else [xp.where(at.unused, -xp.inf, logit) for logit in found]


def _with_every_axis(operand: Operand, given: Any) -> Any:
    """An array of (batch, head, query, key), 1 where it has no such axis; None stays."""
    if given is None:
        return None
    array = np.asarray(given)
    array = array if array.dtype == np.bool_ else array.astype(np.float64)
    behind = 4 - "bhqk".index(operand.axes[-1]) - 1
    return array[(..., *[None] * behind)]


def packed(
    query: Any, key: Any, value: Any, starts_q: Any, starts_k: Any, *, alibi: Any = None, **features: Any
) -> tuple[Array, Array]:
    """Attention of packed sequences (H, T, D), of which b has the rows starts[b] to starts[b + 1].

    Out (Hq, Tq, Dv) and lse (Hq, Tq); a row of no sequence gives 0 and -inf. `alibi` is (Hq,) or (B, Hq).
    """
    q, k, v = (np.asarray(array, dtype=np.float64) for array in (query, key, value))
    out, lse = np.zeros((*q.shape[:2], v.shape[-1])), np.full(q.shape[:2], -np.inf)
    for at, (rows, keys) in enumerate(zip(_ranges(starts_q), _ranges(starts_k), strict=True)):
        slopes = alibi if alibi is None or np.ndim(alibi) == 1 else alibi[at]
        found = attention(q[:, rows], k[:, keys], v[:, keys], alibi=slopes, **features)
        out[:, rows], lse[:, rows] = found
    return out, lse


def _ranges(starts: Any) -> list[slice]:
    return [slice(int(begin), int(end)) for begin, end in pairwise(starts)]


@dataclass(frozen=True)
class Comparison:
    """How a result differs from the oracle. Errors are absolute, over the places where both are finite."""

    positions_agree: bool  # NaN, +inf and -inf stand at the same places
    error: float
    rms: float
    low_error: float
    rounding_unit: float
    bound: float = 0.0  # what rounding alone may explain; 0 where nobody asked

    @property
    def allowed(self) -> float:
        """The largest error that the rule lets pass."""
        return max(ERROR_FACTOR * self.low_error + self.rounding_unit, self.bound)

    @property
    def ok(self) -> bool:
        """True where positions agree and the error is within the rule; a NaN error never passes."""
        return self.positions_agree and self.error <= self.allowed

    def __str__(self) -> str:
        places = "" if self.positions_agree else "NaN or inf at other places than the oracle; "
        return f"{places}error {self.error:.3g}, allowed {self.allowed:.3g} (rms {self.rms:.3g})"


def compare(result: Any, oracle: Any, low: Any, dtype: str, bound: float = 0.0) -> Comparison:
    """Judge `result` by the oracle and by `low`, another computation of the same in the precision of `dtype`.

    `bound` is the largest error that rounding can explain (rounding.py).
    """
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
        bound=bound,
    )
