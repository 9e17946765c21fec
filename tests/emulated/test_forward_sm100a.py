"""The attention forward of sm100a, executed: right in every mode, with every feature, and without a race."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from microbench.emulator import MODES, Mode
from tests.emulated.forward_case import ForwardCase
from tests.emulated.forward_launch import Kernel
from tests.emulated.forward_sm100a import PATH, config_of, run
from tests.emulated.forward_tests import BANDS, CAPPED, FEATURES, MASKED, Forward, ForwardTests, cases

# Two tiles of rows, the second one cut short, and three of keys or more; a block works on several.
WIDTHS = {
    64: (ForwardCase(seq_q=333, seq_kv=300, head_dim=64, heads_q=2, right=0), config_of(64, polynomial=8)),
    128: (ForwardCase(seq_q=300, seq_kv=333, head_dim=128), config_of(128, polynomial=4)),
    80: (ForwardCase(seq_q=270, seq_kv=200, head_dim=80, dtype="float16", memory="bshd"), config_of(64, dynamic=0)),
    192: (ForwardCase(seq_q=130, seq_kv=330, head_dim=192, heads_q=1), config_of(128)),
    256: (ForwardCase(seq_q=130, seq_kv=170, head_dim=256, heads_q=1, dtype="float16"), config_of(64)),
    # Held alike, and unlike all the same: the launch counts the head dim's columns.
    "104 and 128": (ForwardCase(seq_q=150, seq_kv=130, head_dim=104, head_dim_v=128, heads_q=1), config_of(128)),
    "192 and 128": (
        ForwardCase(seq_q=270, seq_kv=300, head_dim=192, head_dim_v=128, heads_q=1),
        config_of(128, polynomial=6),
    ),
    # Value dims that are held at the next multiple of 32, in one panel and in several.
    "80 and 48": (ForwardCase(seq_q=270, seq_kv=140, head_dim=80, head_dim_v=48, heads_q=1, right=0), config_of(64)),
    "192 and 144": (
        ForwardCase(seq_q=130, seq_kv=200, head_dim=192, head_dim_v=144, heads_q=1, memory="bshd"),
        config_of(64),
    ),
    "64 and 256": (ForwardCase(seq_q=130, seq_kv=200, head_dim=56, head_dim_v=256, heads_q=1), config_of(64)),
}
FORWARD = Forward(run, Kernel(PATH, config_of(64), MASKED), Kernel(PATH, config_of(64, polynomial=8), CAPPED))
FEATURED, PACKED, why_wrong = FORWARD.featured, FORWARD.packed, FORWARD.why_wrong


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("feature", ["a window", "packed and causal"])
def test_one_block_takes_all_tiles_in_every_mode(feature: str, mode: Mode) -> None:
    assert not why_wrong(mode, (BANDS | FEATURES)[feature], blocks=1)


@settings(max_examples=20, deadline=None)
@given(case=cases(), mode=st.sampled_from(MODES), blocks=st.integers(1, 3), section=st.integers(1, 3))
def test_random_problems_are_right(case: ForwardCase, mode: Mode, blocks: int, section: int) -> None:
    assert not why_wrong(mode, case, blocks=blocks, section=section)


class TestForward(ForwardTests):
    forward, widths, features = FORWARD, WIDTHS, BANDS | FEATURES

    def test_each_feature_is_right(self, feature: str, mode: Mode) -> None:
        """In every mode: nobody has run this kernel on its GPU."""
        assert not why_wrong(mode, self.features[feature])
