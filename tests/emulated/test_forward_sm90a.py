"""The attention forward of sm90a, executed: right in every mode, with every feature, and without a race."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from microbench.emulator import MODES, Mode
from tests.emulated.forward_case import ForwardCase
from tests.emulated.forward_launch import Kernel
from tests.emulated.forward_sm90a import PATH, config_of, run
from tests.emulated.forward_tests import BANDS, BETWEEN, CAPPED, FEATURES, MASKED, Forward, ForwardTests, between, cases

# Two tiles of rows, the second one cut short, and three of keys or more; a block works on several.
WIDTHS = {
    64: (ForwardCase(seq_q=333, seq_kv=300, head_dim=64, heads_q=2, right=0), config_of(112, 3, q_in_registers=1)),
    128: (ForwardCase(seq_q=200, seq_kv=333, head_dim=128), config_of(128, q_in_registers=1)),
    "64 and 48": (ForwardCase(seq_q=150, seq_kv=200, head_dim=56, head_dim_v=48, heads_q=1, right=0), config_of(64)),
    80: (
        ForwardCase(seq_q=150, seq_kv=200, head_dim=80, dtype="float16", memory="bshd"),
        config_of(80, q_in_registers=1),
    ),
    192: (ForwardCase(seq_q=130, seq_kv=170, head_dim=192, heads_q=1), config_of(64)),
    256: (ForwardCase(seq_q=130, seq_kv=170, head_dim=256, heads_q=1, dtype="float16"), config_of(64)),
}
SLOW_WIDTHS = {f"{d} and {dv}": between((d, dv)) for d, dv in BETWEEN}
FORWARD = Forward(run, Kernel(PATH, config_of(64), MASKED), Kernel(PATH, config_of(64, q_in_registers=1), CAPPED))
FEATURED, PACKED, why_wrong = FORWARD.featured, FORWARD.packed, FORWARD.why_wrong


class TestForward(ForwardTests):
    forward, widths, features = FORWARD, WIDTHS, BANDS | FEATURES


@pytest.mark.slow
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("which", SLOW_WIDTHS)
def test_head_dims_between_and_value_dims_unlike_are_right_in_every_mode(which: str, mode: Mode) -> None:
    case = SLOW_WIDTHS[which]
    held = int(case.head_dim <= 128)
    config = config_of(64 if max(case.head_dim, case.head_dim_v) <= 128 else 32, q_in_registers=held)
    assert not why_wrong(mode, case, Kernel(PATH, config, case.problem))


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("feature", ["a window", "packed and causal"])
def test_skipped_tiles_are_right_in_every_mode(feature: str, mode: Mode) -> None:
    assert not why_wrong(mode, (BANDS | FEATURES)[feature], blocks=1)


@settings(max_examples=20, deadline=None)
@given(case=cases(), mode=st.sampled_from(MODES), blocks=st.integers(1, 3), section=st.integers(1, 3))
def test_random_problems_are_right(case: ForwardCase, mode: Mode, blocks: int, section: int) -> None:
    assert not why_wrong(mode, case, blocks=blocks, section=section)
