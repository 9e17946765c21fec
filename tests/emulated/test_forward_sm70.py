"""The attention forward of sm70, executed: right in every mode, with every feature, and without a race."""

from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from microbench.emulator import MODES, Mode
from tests.emulated.forward_case import ForwardCase
from tests.emulated.forward_launch import Kernel
from tests.emulated.forward_sm70 import PATH, config_of, run
from tests.emulated.forward_tests import CAPPED, MASKED, Forward, HalfTests, cases, halved

# Two tiles of rows, the second one cut short, and three of keys or more; an odd and an even number of 16 columns.
WIDTHS = {
    80: (halved(ForwardCase(seq_q=100, seq_kv=150, head_dim=72, right=0)), config_of(32)),
    128: (halved(ForwardCase(seq_q=200, seq_kv=150, head_dim=128)), config_of(32, warp_rows=32, p_in_registers=0)),
    256: (halved(ForwardCase(seq_q=130, seq_kv=70, head_dim=248, heads_q=1, right=0)), config_of(32, warps=8)),
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
    "d256, eight warps": (
        ForwardCase(seq_q=150, seq_kv=150, head_dim=256, heads_q=1, right=0),
        config_of(32, warps=8),
    ),
    "d256, keys of a row on three blocks": (
        ForwardCase(seq_q=150, seq_kv=250, head_dim=256, heads_q=1),
        config_of(32, warps=8, key_splits=3),
    ),
    "d256": (ForwardCase(seq_q=70, seq_kv=100, head_dim=256, heads_q=1), config_of(32)),
}
FEATURED, PACKED = (replace(problem, dtype="float16") for problem in (MASKED, CAPPED))
FORWARD = Forward(run, Kernel(PATH, config_of(64), FEATURED), Kernel(PATH, config_of(64, p_in_registers=0), PACKED))


class TestForward(HalfTests):
    forward, widths, slow_widths = FORWARD, WIDTHS, SLOW_WIDTHS


# No method: Hypothesis asks one test of one class.
@settings(max_examples=15, deadline=None)
@given(case=cases(), mode=st.sampled_from(MODES), section=st.integers(1, 3))
def test_random_problems_are_right(case: ForwardCase, mode: Mode, section: int) -> None:
    assert not FORWARD.why_wrong(mode, halved(case), section=section)
