"""Scores as large as finite inputs make them: both forwards are right wherever float32 holds the score.

Where it does not, a score of +inf makes its row NaN and one of -inf hides its key, as in torch's float32.
"""

import math
from dataclasses import dataclass, replace

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from microbench.emulator import EmulatedDevice
from tests.emulated import (
    forward_sm80,
    forward_sm90a,
    forward_sm100a,
    forward_split_keys,
    test_forward_sm80,
    test_forward_sm90a,
    test_forward_sm100a,
)
from tests.emulated.forward_case import ForwardCase, Inputs, Outputs, along_one, expected_of, inputs_of, judge
from tests.emulated.forward_launch import Kernel
from tests.emulated.forward_tests import Forward

HALF = ForwardCase(seq_q=512, seq_kv=512, dtype="float16")


@dataclass(frozen=True)
class Whole(Forward):
    """With a build for float16 beside those for bfloat16: with features, and packed and softcapped."""

    half: Kernel

    def __call__(self, case: ForwardCase, inputs: Inputs) -> Outputs:
        kernel = self.half if case.dtype == "float16" else self.packed if case.lengths else self.featured
        return self.run(EmulatedDevice("lazy"), case, kernel, inputs=inputs)


# The build of sm80 that has no mask passes most slices without a maximum; a masked one never does.
AMPERE = Whole(forward_sm80.run, test_forward_sm80.FEATURED, test_forward_sm80.PACKED, test_forward_sm80.HALF)
PLAIN, PACKED = test_forward_sm90a.FEATURED, test_forward_sm90a.PACKED
HOPPER = Whole(forward_sm90a.run, PLAIN, PACKED, replace(PLAIN, problem=HALF.problem))
ROWS, ROWS_PACKED = test_forward_sm100a.FEATURED, test_forward_sm100a.PACKED
BLACKWELL = Whole(forward_sm100a.run, ROWS, ROWS_PACKED, replace(ROWS, problem=HALF.problem))
FEW = Kernel(forward_split_keys.PATH, forward_split_keys.config_of(64, key_warps=4), PLAIN.problem)
SHARED = Whole(forward_split_keys.run, FEW, replace(FEW, problem=PACKED.problem), replace(FEW, problem=HALF.problem))
FORWARDS = {
    "sm80, warps that share rows": replace(SHARED, featured=replace(FEW, problem=test_forward_sm80.BAND.problem)),
    "sm80, warps that share rows, with features": SHARED,
    "sm80": replace(AMPERE, featured=test_forward_sm80.BAND),
    "sm80 with features": AMPERE,
    "sm90a": replace(HOPPER, featured=replace(PLAIN, problem=test_forward_sm80.BAND.problem)),
    "sm90a with features": HOPPER,
    "sm100a with features": BLACKWELL,
}
ONE = ForwardCase(heads_q=1, seq_q=1, seq_kv=64)
MANY = ForwardCase(heads_q=1, seq_q=20, seq_kv=200)  # of warps, some have no rows; of tiles, the last is cut short


@pytest.fixture(params=FORWARDS)
def forward(request: pytest.FixtureRequest, emulator: None) -> Whole:
    return FORWARDS[request.param]


CASES = (ONE, replace(ONE, seq_kv=1), MANY, replace(MANY, right=0))
EQUAL = [*((case, value) for case in CASES for value in (133120.0, 1e17)), (ONE, 7e3), (ONE, 2e4), (ONE, 1e9)]
EQUAL += [(replace(case, dtype="float16"), value) for case in (ONE, MANY) for value in (7e3, 2e4, 65504.0)]


@pytest.mark.parametrize(("case", "value"), EQUAL, ids=lambda each: getattr(each, "dtype", each))
def test_equal_scores_give_the_mean_of_v(case: ForwardCase, value: float, forward: Whole) -> None:
    drawn, reach = inputs_of(case), 1.0 if case.dtype == "float16" else value
    for sign in (1, -1):
        q, k = (np.full(bits.shape, value, np.float32) for bits in (drawn.q, drawn.k))
        v = np.full(drawn.v.shape, reach, np.float32)
        inputs = replace(drawn, q=case.bits(sign * q), k=case.bits(k), v=case.bits(v))
        assert not judge(case, inputs, forward(case, inputs))


@st.composite
def problems(draw: st.DrawFn) -> tuple[ForwardCase, Inputs]:
    """Scores from -8 to 8 times any power of two, in any order of keys, so that maxima rise from far to near and on."""
    half, softcap = draw(st.booleans()), draw(st.sampled_from([0.0, 0.0, 30.0, 1024.0]))
    case = replace(
        draw(st.sampled_from([ONE, MANY])), scaled=2.0 ** draw(st.integers(-12, 12)), seed=draw(st.integers(0, 1 << 20))
    )
    if softcap:
        case = replace(case, softcap=softcap, lengths=((case.seq_q, case.seq_kv), (3, 70)))
    elif half:
        case = replace(case, dtype="float16")
    else:
        case = replace(case, left=draw(st.none() | st.integers(-100, 100)), right=draw(st.none() | st.integers(0, 100)))
        if case.left is not None and case.right is not None and case.left > case.right:
            case = replace(case, left=-case.left)
    rng = np.random.default_rng(case.seed)
    rows, keys = inputs_of(case).q.shape[2], inputs_of(case).k.shape[2]
    power = draw(st.integers(-4, 12 if case.dtype == "float16" else 50))
    rising = draw(st.sampled_from([0.0, -1.0, 1.0]))  # keys are visited from the last to the first
    factors = np.clip(np.round(rng.uniform(-8, 8, keys) + rising * np.linspace(-16, 16, keys)), -8, 8)
    return case, along_one(case, rng.choice([-2.0, 1.0, 2.0], rows), factors * 2.0**power)


@settings(max_examples=15, deadline=None)
@given(problems())
def test_any_exact_scores_are_weighed_right(emulator: None, problem: tuple[ForwardCase, Inputs]) -> None:
    case, inputs = problem
    for name, forward in FORWARDS.items():
        assert not judge(case, inputs, forward(case, inputs)), name


@pytest.mark.parametrize("scale", [2.0**-60, 1e-9, 1e9, 2.0**60])
def test_a_scale_may_be_tiny_or_large(scale: float, forward: Whole) -> None:
    for reach in (1.0, 1e-3 / scale, 3e6 / scale, 1e12 / scale):
        case = replace(MANY, scaled=scale)
        rng = np.random.default_rng(0)
        factor = 2.0 ** round(math.log2(reach))
        inputs = along_one(case, rng.choice([1.0, 2.0], 20), rng.integers(-8, 9, 200) * factor)
        if np.isfinite(np.float32(32 * factor)) and np.isfinite(np.float32(32 * factor * scale * 1.5)):
            assert not judge(case, inputs, forward(case, inputs))


def test_rows_with_and_without_huge_scores_stand_side_by_side(forward: Whole) -> None:
    case, rng = MANY, np.random.default_rng(1)
    q = np.where(np.arange(20) % 3 == 0, 2.0**30, 1.0)
    inputs = along_one(case, q, rng.integers(-8, 9, 200) * 1.0)
    assert not judge(case, inputs, forward(case, inputs))


@pytest.mark.parametrize("scaled", [None, 2.0**60], ids=["before the scale", "by the scale"])
def test_what_overflows_float32_is_inf_as_in_torch(scaled: float | None, forward: Whole) -> None:
    case, huge = replace(MANY, scaled=scaled), 2.0**120 if scaled is None else 2.0**70
    q = np.where(np.arange(20) % 2, 1.0, huge)
    k = np.where(np.arange(200) % 5, 1.0, -huge)
    k[7] = huge
    inputs = along_one(case, q, k * (1.0 if scaled is None else 2.0**-3))
    with np.errstate(over="ignore"):
        factors = (case.values(bits)[0, 0, :, 0].astype(np.float32) for bits in (inputs.q, inputs.k))
        scores = np.multiply.outer(*factors) * np.float32(case.scale)
    outputs = forward(case, inputs)
    out, lse = case.values(outputs.out)[0, 0].astype(np.float64), outputs.lse[0, 0]
    over = np.isposinf(scores).any(1)
    assert over.any() and np.isnan(out[over]).all() and np.isnan(lse[over]).all()
    assert np.isfinite(out[~over]).all() and np.isfinite(lse[~over]).all()


def test_a_row_whose_scores_are_all_minus_inf_sees_nothing(forward: Whole) -> None:
    case = MANY
    q = np.where(np.arange(20) % 2, 1.0, 2.0**120)
    inputs = along_one(case, q, np.full(200, -(2.0**120)))
    outputs, expected = forward(case, inputs), expected_of(case, inputs)
    out, lse = case.values(outputs.out)[0, 0].astype(np.float64), outputs.lse[0, 0]
    assert not out[::2].any() and np.isneginf(lse[::2]).all()
    assert np.allclose(out[1::2], expected.out[0, 0, 1::2], atol=0.02) and np.isfinite(lse[1::2]).all()


@settings(max_examples=4, deadline=None)
@given(seed=st.integers(0, 1 << 20))
@example(seed=0)
def test_a_mask_and_alibi_among_huge_scores(emulator: None, seed: int) -> None:
    rng = np.random.default_rng(seed)
    mask = replace(MANY, mask="full", sinks=True, seed=seed)
    slopes = replace(MANY, alibi="heads", seed=seed, right=None)
    for name in ("sm80 with features", "sm90a with features", "sm100a with features"):
        for case, slope in ((mask, 0.0), (slopes, 2.0**22)):
            inputs = along_one(case, rng.choice([1.0, 2.0], 20), rng.integers(-8, 9, 200) * 2.0**34)
            if slope:
                inputs = replace(inputs, slopes=np.full_like(inputs.slopes, slope))
            assert not judge(case, inputs, FORWARDS[name](case, inputs)), name
