"""The attention forward of sm100a where one role runs first, whenever it can, or last, only where no other role can."""

from dataclasses import replace

import pytest

from microbench.emulator import MODES, EmulatedDevice, Mode
from tests.emulated import test_forward_pair_sm100a as pairs
from tests.emulated.forward_case import ForwardCase, inputs_of, judge
from tests.emulated.forward_launch import Kernel
from tests.emulated.forward_sm100a import PATH, run
from tests.emulated.forward_tests import FEATURES
from tests.emulated.test_forward_sm100a import PACKED, WIDTHS

# Warps of a block with two query tiles (config.cuh), and of one with one.
ROLES = {
    "the softmax of the first query tile": range(4),
    "the softmax of the second one": range(4, 8),
    "both": range(8),
    "the correction": range(8, 12),
    "the issuer": range(12, 13),
    "the loader": range(13, 14),
    "the writer": range(14, 15),
    "the cleaner": range(15, 16),
}
ROLES_OF_ONE = {
    "the softmax": range(4),
    "the correction": range(4, 8),
    "the issuer": range(8, 9),
    "the loader": range(9, 10),
    "the writer": range(10, 11),
}
CASE = replace(FEATURES["packed and causal"], spread=12.0)


def why_wrong(mode: Mode, case: ForwardCase, kernel: Kernel, **order: range) -> str:
    inputs, device = inputs_of(case), EmulatedDevice(mode, **order)
    return judge(case, inputs, run(device, case, kernel, blocks=1, inputs=inputs))


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("role", ROLES)
def test_packed_sequences_are_right_whichever_role_runs_first_or_last(role: str, mode: Mode) -> None:
    assert not why_wrong(mode, CASE, PACKED, favoured_warps=ROLES[role])
    assert not why_wrong(mode, CASE, PACKED, starved_warps=ROLES[role])


@pytest.mark.parametrize("role", ROLES_OF_ONE)
def test_one_query_tile_is_right_whichever_role_runs_first_or_last(role: str) -> None:
    case, config = WIDTHS[256]
    kernel = Kernel(PATH, config, case.problem)
    assert not why_wrong("lazy", case, kernel, favoured_warps=ROLES_OF_ONE[role])
    assert not why_wrong("lazy", case, kernel, starved_warps=ROLES_OF_ONE[role])


# The issuer of the block that does not issue is the relay.
@pytest.mark.parametrize("role", ROLES)
def test_a_pair_is_right_whichever_role_of_both_blocks_runs_first_or_last(role: str) -> None:
    case = pairs.PACKED
    kernel = pairs.FORWARD.packed
    for order in ({"favoured_warps": ROLES[role]}, {"starved_warps": ROLES[role]}):
        inputs = inputs_of(case)
        assert not judge(case, inputs, run(EmulatedDevice("lazy", **order), case, kernel, blocks=2, inputs=inputs))


@pytest.mark.slow  # 52 pairs
def test_a_role_runs_first_while_another_one_runs_last() -> None:
    for first in ROLES.values():
        for last in ROLES.values():
            if not {*first} & {*last}:
                assert not why_wrong("lazy", CASE, PACKED, favoured_warps=first, starved_warps=last)
