"""One head of attention: random inputs, and what NumPy says of them."""

import math
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

HEAD_DIM = 64


def scale_log2(head_dim: int) -> float:
    """What a kernel that exponentiates to base 2 multiplies scores by."""
    return float(head_dim**-0.5 * math.log2(math.e))


# p is rounded to bf16 (2^-9) and averages values of N(0, 1): the worst of 16,000 outputs stays below.
TOLERANCE = 8e-3

Floats = NDArray[np.float32]


def bf16_bits(values: NDArray[Any]) -> NDArray[np.uint16]:
    """The upper half of each float32: exact where the value is a bf16 already."""
    words = np.ascontiguousarray(values, np.float32).view(np.uint32)
    return ((words + 0x7FFF + (words >> 16 & 1)) >> 16).astype(np.uint16)


def from_bf16(bits: NDArray[np.uint16]) -> Floats:
    """The float32 of each bf16."""
    return (bits.astype(np.uint32) << 16).view(np.float32)


@dataclass(frozen=True)
class AttentionCase:
    """q, k and v as bits of a 16-bit float, (sequence, head dimension) each, and the expected output."""

    q: NDArray[np.uint16]
    k: NDArray[np.uint16]
    v: NDArray[np.uint16]
    expected: NDArray[np.float64]


def attention_case(
    sequence: int, seed: int = 0, head_dim: int = HEAD_DIM, kind: Literal["bf16", "f16"] = "bf16"
) -> AttentionCase:
    """Random inputs of N(0, 1), and softmax(q k^T) v in float64."""
    rng = np.random.default_rng(seed)
    drawn = [rng.standard_normal((sequence, head_dim)) for _ in range(3)]
    if kind == "bf16":
        q, k, v = (bf16_bits(each) for each in drawn)
        x, y, z = (from_bf16(each).astype(np.float64) for each in (q, k, v))
    else:
        q, k, v = (each.astype(np.float16).view(np.uint16) for each in drawn)
        x, y, z = (each.view(np.float16).astype(np.float64) for each in (q, k, v))
    scores = x @ y.T * head_dim**-0.5
    weights = np.exp(scores - scores.max(axis=1, keepdims=True))
    expected = weights / weights.sum(axis=1, keepdims=True) @ z
    return AttentionCase(q, k, v, expected)
