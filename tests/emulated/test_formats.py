"""Every format of mma.sync on whatever bits: what NumPy makes of them."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.typing import NDArray

from microbench.verify.differential import layouts
from microbench.verify.differential.number_formats import (
    MMA,
    SUMS,
    Wrapper,
    bits_of,
    dtypes,
    integer_sum,
    registers,
    values_of,
)
from microbench.verify.differential.scaled import SCALED_FORMS
from tests.emulated.formats import run_mma

Bits = NDArray[Any]
INTEGERS = tuple(each for each in MMA if each.sums == "s32")
FLOATS = tuple(each for each in MMA if each.sums != "s32")
FP8 = tuple(each for each in FLOATS if each.per_word == 4)
few = settings(max_examples=15, deadline=None)
SEEDS = st.integers(0, 2**32 - 1)


def label(wrapper: Wrapper) -> str:
    return f"m16n8k{wrapper.k}_{wrapper.name}.{wrapper.sums}"


def multiplied(wrapper: Wrapper, a: Bits, b: Bits, c: Any) -> Any:
    """d, (16, 8), after the wrapper. a (16, k) and b (k, 8) as bits, c as sums."""
    places = layouts.mma_accumulator()
    fa = registers(a[layouts.mma_a(wrapper.k, wrapper.per_word)])
    fb = registers(b[layouts.mma_b(wrapper.k, wrapper.per_word)])
    d = np.ascontiguousarray(c[places])
    run_mma(wrapper, fa, fb, d)
    found = np.empty_like(c)
    found[places] = d
    return found


def any_bits(shape: tuple[int, int]) -> st.SearchStrategy[Bits]:
    """Bytes: a few that hypothesis thinks of, or all of them at random."""
    dense = SEEDS.map(lambda seed: np.random.default_rng(seed).integers(0, 256, shape, np.uint8))
    return dense | hnp.arrays(np.uint8, shape)


@pytest.mark.parametrize("wrapper", INTEGERS, ids=label)
@few
@given(st.data())
def test_integers_multiply_exactly_and_wrap_or_saturate(wrapper: Wrapper, data: Any) -> None:
    a, b = (data.draw(any_bits(shape)) for shape in ((16, wrapper.k), (wrapper.k, 8)))
    ends = st.sampled_from((2**31 - 1, -(2**31)))
    c = data.draw(hnp.arrays(np.int32, (16, 8), elements=ends | st.integers(-(2**31), 2**31 - 1)))
    expected = integer_sum(values_of(a, wrapper.a), values_of(b, wrapper.b), c, wrapper.saturates)
    np.testing.assert_array_equal(multiplied(wrapper, a, b, c), expected)


@pytest.mark.parametrize("wrapper", FLOATS, ids=label)
@few
@given(seed=SEEDS, scale=st.integers(-3, 3))
def test_floats_differ_from_the_exact_sum_by_their_rounding(wrapper: Wrapper, seed: int, scale: int) -> None:
    rng = np.random.default_rng(seed)
    a, b, c = (rng.standard_normal(shape) * 2.0**scale for shape in ((16, wrapper.k), (wrapper.k, 8), (16, 8)))
    a_bits, b_bits, c = bits_of(a, wrapper.a), bits_of(b, wrapper.b), c.astype(SUMS[wrapper.sums])
    a, b = values_of(a_bits, wrapper.a), values_of(b_bits, wrapper.b)
    expected, size = a @ b + c, abs(a) @ abs(b) + abs(c.astype(float))
    # Each of up to 33 additions in f32 is off by 2^-24 of at most `size`; an f16 then keeps 11 bits, at least 2^-25.
    allowed = 33 * 2.0**-24 * size + (2.0**-11 * abs(expected) + 2.0**-25 if wrapper.sums == "f16" else 0)
    assert (abs(multiplied(wrapper, a_bits, b_bits, c).astype(float) - expected) <= allowed).all()


@pytest.mark.parametrize("wrapper", [each for each in FP8 if each.sums == "f32"], ids=label)
@few
@given(data=st.data())
def test_every_code_of_fp8_counts_what_it_is_worth(wrapper: Wrapper, data: Any) -> None:
    """Denormals, and what is no number: one NaN, or one infinity times 0, spoils its row or column and no other."""
    a_bits, b_bits = (data.draw(any_bits(shape)) for shape in ((16, wrapper.k), (wrapper.k, 8)))
    a, b = values_of(a_bits, wrapper.a), values_of(b_bits, wrapper.b)
    found = multiplied(wrapper, a_bits, b_bits, np.zeros((16, 8), np.float32)).astype(float)
    with np.errstate(invalid="ignore"):
        expected = a @ b
        allowed = 33 * 2.0**-24 * (abs(a) @ abs(b))
    finite = np.isfinite(expected)
    np.testing.assert_array_equal(found[~finite], expected[~finite])
    assert (abs(found[finite] - expected[finite]) <= allowed[finite]).all()


def test_a_tf32_is_read_without_its_lower_bits() -> None:
    for wrapper in (each for each in MMA if each.a == "tf32"):
        rng = np.random.default_rng(1)
        a, b = (bits_of(rng.standard_normal(shape), "tf32") for shape in ((16, wrapper.k), (wrapper.k, 8)))
        zero = np.zeros((16, 8), np.float32)
        cut = multiplied(wrapper, a & np.uint32(0xFFFFE000), b & np.uint32(0xFFFFE000), zero)
        np.testing.assert_array_equal(multiplied(wrapper, a | np.uint32(0x1FFF), b | np.uint32(0x1FFF), zero), cut)


def test_every_type_is_tried() -> None:
    here = {each.a for each in MMA} | {each.b for each in MMA}
    scaled = {each.elements for each in SCALED_FORMS} | {each.scale for each in SCALED_FORMS}  # test_tcgen05_scaled.py
    assert here | scaled == set(dtypes())
