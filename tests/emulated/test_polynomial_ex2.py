"""exp2 as a polynomial, run on the emulator: as exact as exponentials.cuh says, and 0 and NaN where they belong."""

import re

import numpy as np

from microbench.emulator import EmulatedDevice
from tests.emulated.forward_case import Array
from tests.emulated.test_forward_sm100a import FEATURED

(TEXT,) = (folder / "exponentials.cuh" for folder in FEATURED.include if (folder / "exponentials.cuh").exists())
CLAIMED = 1.6e-7  # the relative error


def source() -> str:
    """The device function alone, and a kernel that applies it to pairs."""
    function = re.search(r"__device__ __forceinline__ float2 polynomial_ex2\(.*?\n}\n", TEXT.read_text(), re.DOTALL)
    assert function
    return f"""#include "ptx/math_sm100.cuh"
{function[0]}
extern "C" __global__ void exponentials(const float2* x, float2* out, int pairs) {{
  for (int i = threadIdx.x; i < pairs; i += 32) out[i] = polynomial_ex2(x[i]);
}}
"""


def polynomial_ex2(x: Array) -> Array:
    device = EmulatedDevice(races=False)
    out = device.full(x.size, np.nan, np.float32)
    kernel = device.load(source(), "exponentials.cu", kernel="exponentials")
    kernel((1,), (32,), (device.asarray(x.astype(np.float32)), out, x.size // 2))
    return out


def test_the_text_claims_what_is_held_here() -> None:
    assert "in float32 by 1.6e-7" in TEXT.read_text()


def test_the_relative_error_is_what_the_text_claims() -> None:
    rng = np.random.default_rng(0)
    halves = np.arange(-126, 0.5, 0.5, np.float32)  # where rounding to an integer changes sides
    near = [np.nextafter(halves, np.float32(side), dtype=np.float32) for side in (-200, 1)]
    x = np.concatenate((halves, *near, rng.uniform(-126, 0, 1 << 19), -(2.0 ** rng.uniform(-30, 7, 1 << 17))))
    x = x[(x >= -126) & (x <= 0)].astype(np.float32)
    x = x[: x.size // 2 * 2]
    exact = np.exp2(x.astype(np.float64))
    error = np.abs(polynomial_ex2(x) - exact) / exact
    assert 1e-7 < error.max() <= CLAIMED  # the lower bound: that the points are dense enough to find the worst


def test_what_is_too_small_is_0_and_nan_stays_nan() -> None:
    out = polynomial_ex2(np.array([-127, -127.5, -1000, -np.inf, np.nan, 0], np.float32))
    np.testing.assert_array_equal(out, [0, 0, 0, 0, np.nan, 1])
