"""The attention forward of sm70, executed: right in every mode, with every feature, and without a race."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from microbench.emulator import MODES, EmulatedDevice, Mode
from tests.emulated.forward_case import ForwardCase, along_one, judge
from tests.emulated.forward_launch import Kernel
from tests.emulated.forward_sm70 import PATH, config_of, run
from tests.emulated.forward_tests import BANDS, CAPPED, FEATURES, MASKED, SOME, Forward, ForwardTests, cases, halved

# Two tiles of rows, the second one cut short, and three of keys or more; an odd and an even number of 16 columns.
WIDTHS = {
    80: (halved(ForwardCase(seq_q=100, seq_kv=150, head_dim=72, right=0)), config_of(32)),
    128: (halved(ForwardCase(seq_q=200, seq_kv=150, head_dim=128)), config_of(32, warp_rows=32, p_in_registers=0)),
}
SLOW_WIDTHS = {
    "d16": (ForwardCase(seq_q=100, seq_kv=150, head_dim=8, right=0), config_of(32)),
    "d32": (ForwardCase(seq_q=100, seq_kv=150, head_dim=32), config_of(32, p_in_registers=0)),
    "d48": (ForwardCase(seq_q=150, seq_kv=150, head_dim=48, right=3), config_of(64, warp_rows=32)),
    "d64, eight warps": (ForwardCase(seq_q=200, seq_kv=300, head_dim=64), config_of(64, warps=8)),
    "d96 in (B, S, H, D)": (ForwardCase(seq_q=100, seq_kv=150, head_dim=96, memory="bshd"), config_of(64)),
    "d112": (ForwardCase(seq_q=100, seq_kv=100, head_dim=112), config_of(64, p_in_registers=0)),
    "d128": (ForwardCase(seq_q=100, seq_kv=200, head_dim=128, right=30), config_of(64)),
    "d160, 32 rows a warp": (ForwardCase(seq_q=130, seq_kv=100, head_dim=160, heads_q=1), config_of(32, warp_rows=32)),
    "d192": (ForwardCase(seq_q=70, seq_kv=170, head_dim=192, heads_q=1, right=0), config_of(64, p_in_registers=0)),
    "d256": (ForwardCase(seq_q=70, seq_kv=100, head_dim=256, heads_q=1), config_of(32)),
}
FEATURED, PACKED = (replace(problem, dtype="float16") for problem in (MASKED, CAPPED))
FORWARD = Forward(run, Kernel(PATH, config_of(64), FEATURED), Kernel(PATH, config_of(64, p_in_registers=0), PACKED))
why_wrong = FORWARD.why_wrong
HALVED = {name: halved(case) for name, case in FEATURES.items()}


class TestForward(ForwardTests):
    forward, widths, dtype = FORWARD, WIDTHS, "float16"
    features = HALVED


@pytest.mark.slow
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("which", SLOW_WIDTHS)
def test_each_configuration_is_right_in_every_mode(which: str, mode: Mode) -> None:
    case, config = SLOW_WIDTHS[which]
    for spread in (1.0, 30.0):
        wanted = halved(replace(case, spread=spread))
        assert not why_wrong(mode, wanted, Kernel(PATH, config, wanted.problem))


@pytest.mark.parametrize("band", BANDS)
def test_each_band_is_right(band: str) -> None:
    assert not why_wrong("lazy", halved(BANDS[band]))


@pytest.mark.parametrize("power", [-4, 8, 12, 24])
def test_rows_with_and_without_huge_scores_stand_side_by_side(power: int) -> None:
    case, rng = (
        replace(SOME, batch=1, heads_q=1, heads_kv=1, dtype="float16", scaled=2.0**power),
        np.random.default_rng(4 + power),
    )
    q = np.where(np.arange(case.seq_q) % 3 == 0, 2.0**12, 1.0)
    inputs = along_one(case, q, rng.integers(-8, 9, case.seq_kv) * 1.0)
    assert not judge(case, inputs, run(EmulatedDevice("lazy"), case, FORWARD.featured, inputs=inputs))


@settings(max_examples=15, deadline=None)
@given(case=cases(), mode=st.sampled_from(MODES), section=st.integers(1, 3))
def test_random_problems_are_right(case: ForwardCase, mode: Mode, section: int) -> None:
    assert not why_wrong(mode, halved(case), section=section)
