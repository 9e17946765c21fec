"""Why there are three modes: with the race report off, which of them shows a planted bug in its results."""

import pytest

from microbench.emulator import MODES, Mode
from tests.emulated import test_attention_sm80 as sm80
from tests.emulated import test_attention_sm90a as sm90a
from tests.emulated import test_attention_sm100a as sm100a

# Nothing: only the rules on fences, and the vector clocks, know of these. No one mode finds what all three find.
FOUND_BY: dict[tuple[str, str], tuple[Mode, ...]] = {
    ("sm80", "MISSING_WAIT"): ("lazy", "random"),
    ("sm80", "TOO_FEW_COMMITS"): ("lazy", "random"),
    ("sm80", "MISSING_BARRIER_AFTER_LOAD"): ("eager", "lazy", "random"),
    ("sm80", "MISSING_BARRIER_BEFORE_REUSE"): ("random",),
    ("sm90a", "MISSING_INIT_FENCE"): (),
    ("sm90a", "MISSING_EMPTY_WAIT"): ("eager", "lazy", "random"),
    ("sm90a", "MISSING_FULL_WAIT"): ("lazy",),
    ("sm90a", "TOO_FEW_EXPECTED"): ("lazy", "random"),
    ("sm90a", "EARLY_RELEASE"): (),
    ("sm90a", "MISSING_WGMMA_WAIT"): ("eager", "lazy", "random"),
    ("sm90a", "MISSING_PROXY_FENCE"): (),
    ("sm100a", "MISSING_FENCE_AFTER_SCORES"): (),
    ("sm100a", "MISSING_SCORES_WAIT"): ("eager", "lazy", "random"),
    ("sm100a", "MISSING_OUTPUT_WAIT"): ("eager", "lazy", "random"),
    ("sm100a", "MISSING_LD_WAIT"): ("eager", "lazy", "random"),
    ("sm100a", "MISSING_ST_WAIT"): ("eager", "lazy", "random"),
    ("sm100a", "EARLY_RELEASE"): ("lazy", "random"),
    ("sm100a", "OUTPUT_OVER_SCORES"): ("eager", "lazy", "random"),
}


@pytest.mark.parametrize(("family", "bug"), FOUND_BY)
def test_a_bug_shows_in_these_modes(family: str, bug: str) -> None:
    kernel = {"sm80": sm80, "sm90a": sm90a, "sm100a": sm100a}[family].TestAttention()
    assert tuple(mode for mode in MODES if kernel.ends(bug, mode, races=False)[0] != "missed") == FOUND_BY[family, bug]
