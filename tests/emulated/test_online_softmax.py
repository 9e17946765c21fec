"""The online softmax of all kernels, alone on the emulator: what many tiles of keys do to the sum of a row."""

import math

import numpy as np
import pytest
from numpy.typing import NDArray

from attention.kernels.launch.source import COMMON
from microbench.emulator import EmulatedDevice

ROWS, TILE = 32, 8
SOURCE = """#include "online_softmax.cuh"
#include "row_fragment.cuh"
extern "C" __global__ void softmax(const float* scores, float* sums, float* offsets, int tiles, float scale_log2) {
  Softmax<1> state = {{minus_infinity()}, {0.f}, {0.f}};
  for (int tile = 0; tile < tiles; ++tile) {
    Row<8> s;
    for (int i = 0; i < 8; ++i) s[i] = scores[(threadIdx.x * tiles + tile) * 8 + i];
    float correction[1];
    raise_maxima<false>(s, state, correction, scale_log2);
    exponentials(s, state, scale_log2);
  }
  sums[threadIdx.x] = state.sum[0];
  offsets[threadIdx.x] = state.offset[0];
}
"""


def softmax(scores: NDArray[np.floating], scale_log2: float) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Sum and offset of each row of (ROWS, keys), in tiles of TILE keys."""
    device = EmulatedDevice(races=False)
    sums, offsets = (device.full(ROWS, np.nan, np.float32) for _ in range(2))
    kernel = device.load(SOURCE, "online_softmax.cu", kernel="softmax", include=(COMMON,))
    given = (device.asarray(scores.astype(np.float32)), sums, offsets, scores.shape[1] // TILE, np.float32(scale_log2))
    kernel((1,), (ROWS,), given)
    return np.array(sums), np.array(offsets)


@pytest.mark.parametrize("sign", [1, -1])
def test_a_sum_stays_to_the_last_bit_while_no_key_adds_to_it(sign: int, emulator: None) -> None:
    """Offsets of 14 to 43, none of them a float32 before it is rounded."""
    rng = np.random.default_rng(0)
    first = rng.uniform(0, 1, (ROWS, TILE)) + sign * np.linspace(10, 30, ROWS)[:, None]
    rest = np.full((ROWS, 2000 * TILE), -1000.0)
    once, many = (softmax(scores, math.log2(math.e)) for scores in (first, np.concatenate((first, rest), 1)))
    np.testing.assert_array_equal(once, many)


@pytest.mark.parametrize("growth", [0.0, 0.01, -0.01])
@pytest.mark.parametrize("tiles", [1, 30, 1000])
def test_the_error_of_lse_is_that_of_float32_sums(tiles: int, growth: float, emulator: None) -> None:
    """Of maxima that stay, rise in most tiles or lie in the first one.

    An lse may be off by the rounding of offset and exponents, 2^-23 of the largest, and by n additions of relative
    error u = 2^-24 each: u sqrt(n) times a small constant where rounding errors are as good as independent (Higham and
    Mary, A new approach to probabilistic rounding error analysis, 2019), 4 here.
    """
    rng, scale = np.random.default_rng(tiles), 0.3
    scores = rng.normal(30, 10, (ROWS, tiles * TILE)) + growth * np.arange(tiles * TILE)
    scores = scores.astype(np.float32)
    sums, offsets = softmax(scores, scale * math.log2(math.e))
    exact = np.logaddexp.reduce(scores.astype(np.float64) * scale, 1)
    found = offsets * math.log(2) + np.log(sums.astype(np.float64))
    largest = np.abs(scores * scale).max(1)
    allowed = 2.0**-23 * largest + 4 * 2.0**-24 * math.sqrt(tiles * TILE)
    assert (np.abs(found - exact) / allowed).max() <= 1


@pytest.mark.parametrize("high", [-1000.0, 1000.0])
def test_keys_after_hidden_ones_count_whatever_their_size(high: float, emulator: None) -> None:
    scores = np.full((ROWS, 4 * TILE), -np.inf)
    scores[:, 2 * TILE :] = high
    sums, offsets = softmax(scores, 1.0)
    np.testing.assert_array_equal(sums, 2 * TILE)
    np.testing.assert_array_equal(offsets, high)
