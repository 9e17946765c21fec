"""Small instructions on whatever words: what NumPy and ml_dtypes make of them."""

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from microbench.emulator import EmulatedDevice
from microbench.verify.differential import small
from microbench.verify.differential.attention_case import bf16_bits, from_bf16
from microbench.verify.differential.small import random_words, spread
from tests.emulated.arithmetic import CLOSE, E4M3, E5M2, EXACT, FLOATS, NAME, PAIRS, SOURCE, Words, f32, halves

CALLS = (*EXACT, *FLOATS, *PAIRS, *CLOSE)


def results(words: Words) -> dict[str, Words]:
    """Every instruction of three words a lane, (3, 32)."""
    out = np.zeros((len(CALLS), 32), np.uint32)
    defines = (("CALLS", " ".join(f"OUT({call})" for call in CALLS)), ("ROWS", len(CALLS)))
    EmulatedDevice().load(SOURCE, NAME, kernel="arithmetic", defines=defines)((1,), (32,), (words, out))
    return dict(zip(CALLS, out, strict=True))


SEEDS = st.integers(0, 2**32 - 1)
# Each half-way between two tf32.
TIES = np.full((3, 1), 0x3F801000, np.uint32) + np.arange(32, dtype=np.uint32) * 0x2000


@settings(max_examples=60, deadline=None)
@given(SEEDS.map(spread) | SEEDS.map(random_words) | hnp.arrays(np.uint32, (3, 32)))
@example(TIES)
@example(random_words(330182))  # signalling NaN
@example(random_words(2566))  # one of whose bits no tf32 has
@example(np.arange(96, dtype=np.uint32).reshape(3, 32) * 0x02A3F1B7)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_small_instructions_are_those_of_the_manual(words: Words) -> None:
    found = results(words)
    for call, exact in EXACT.items():
        np.testing.assert_array_equal(found[call], exact(*words), call)
    for call, value in FLOATS.items():
        np.testing.assert_array_equal(f32(found[call]), value(*words), call)
    for call, (value, kind, relative, absolute) in PAIRS.items():
        expected = value(*words)
        with_limits = expected.astype(kind).astype(float)  # what overflows the type is infinite in it
        expected = np.where(np.isinf(with_limits), with_limits, expected)
        np.testing.assert_allclose(halves(found[call], kind).astype(float), expected, relative, absolute, err_msg=call)
    for call, (value, relative) in CLOSE.items():
        expected = value(*words)
        expected = np.where(np.isinf(expected.astype(np.float32)), expected.astype(np.float32), expected)
        np.testing.assert_allclose(f32(found[call]), expected, relative, 2**-149, err_msg=call)


def test_a_gpu_is_held_against_the_emulator_by_the_same_instructions() -> None:
    assert tuple(EXACT) == small.EXACT


def test_every_code_of_fp8_survives_the_way_there_and_back() -> None:
    codes = np.arange(256, dtype=np.uint32)
    for kind, to, back in ((E4M3, "e4m3_to_f16x2", "f16x2_to_e4m3"), (E5M2, "e5m2_to_f16x2", "f16x2_to_e5m2")):
        for first in range(0, 256, 32):
            given_codes = codes[first : first + 32]
            out = np.zeros(32, np.uint32)
            defines = (("CALLS", f"OUT(ptx::{back}(ptx::{to}((unsigned short)x)))"), ("ROWS", 1))
            kernel = EmulatedDevice().load(SOURCE, NAME, kernel="arithmetic", defines=defines)
            kernel((1,), (32,), (np.tile(given_codes, (3, 1)), out))
            values = given_codes.astype(np.uint8).view(kind).astype(float)
            finite = np.isfinite(values)
            np.testing.assert_array_equal(out[finite], given_codes[finite])
            np.testing.assert_array_equal(out[np.isnan(values)] & 0xFF, 0x7F)


SPECIAL = (0, -0.0, 1, -2.5, 1e-8, 6e-5, 65504, 65520, 1e6, 3.3e38, np.inf, -np.inf, np.nan, 1 / 3)


def test_conversions_round_as_numpy_does() -> None:
    rng = np.random.default_rng(3)
    spread = rng.standard_normal(114) * 10.0 ** rng.integers(-9, 9, 114)
    numbers = np.concatenate([SPECIAL, spread]).astype(np.float32)
    source = (
        '#include "ptx/convert.cuh"\n#include "ptx/math.cuh"\n'
        'extern "C" __global__ void convert(const float* x, unsigned* f16, unsigned* bf16, float* power) {\n'
        "  const float *two = x + 2 * threadIdx.x;\n"
        "  f16[threadIdx.x] = ptx::pack_f16(two[0], two[1]);\n"
        "  bf16[threadIdx.x] = ptx::pack_bf16(two[0], two[1]);\n"
        "  for (int i = 0; i < 2; ++i) power[2 * threadIdx.x + i] = ptx::ex2(ptx::ffma(two[i], 1.f, 0.f));\n}\n"
    )
    f16, bf16, power = np.zeros(128, np.uint16), np.zeros(128, np.uint16), np.zeros(128, np.float32)
    EmulatedDevice().load(source, "convert.cu", kernel="convert")((1,), (64,), (numbers, f16, bf16, power))
    number = ~np.isnan(numbers)
    with np.errstate(over="ignore", under="ignore"):
        np.testing.assert_array_equal(f16.view(np.float16), numbers.astype(np.float16))
        np.testing.assert_array_equal(bf16[number], bf16_bits(numbers)[number])
        expected = np.exp2(numbers.astype(np.float64)).astype(np.float32)
    expected[expected < np.finfo(np.float32).tiny] = 0
    np.testing.assert_allclose(power, expected, rtol=1e-6)
    assert np.isnan(from_bf16(bf16)[~number]).all()
