"""The cases of the differential test: the emulator makes of them what NumPy says, and the comparison can fail."""

import numpy as np
import pytest

from tests.gpu import differential
from tests.gpu.differential_cases import Case, cases

# One of each kernel and kind of layout; the rest differ by a number. Cases without NumPy's answer only have to run.
CHOSEN = [
    index
    for index, case in enumerate(cases())
    if not case.wrapper.startswith("wgmma") or case.layout.split(" ", 1)[0] in ("n32", "n64")
    if not (case.wrapper.startswith("wgmma") and case.values == "normal")
]


@pytest.mark.parametrize("index", CHOSEN, ids=lambda index: cases()[index].key)
def test_the_emulator_makes_of_a_case_what_numpy_says(index: int) -> None:
    case: Case = cases()[index]
    seeds = range(3) if not case.kernel.startswith("attention") else range(1)
    found = differential.emulated(index, seeds)
    expected = [each.ravel() for launch in case.launches(seeds) for each in launch.expected]
    if expected:
        wrong, worst = differential.differing(found, np.concatenate(expected), 2 * case.tolerance)
        assert not wrong, worst
    assert found.size


def test_a_wrong_result_is_counted() -> None:
    expected = np.array([1.0, 0.0, np.nan, 1000.0], np.float32)
    found = np.array([1.0, -0.0, np.nan, 1001.0], np.float32)
    assert differential.differing(found, expected, 0.0) == (1, 0.001)
    assert differential.differing(found, expected, 0.002) == (0, 0.001)
    assert differential.differing(np.array([np.nan]), np.array([1.0]), 1.0)[0] == 1


def test_seeds_cover_the_whole_exact_range() -> None:
    case = next(case for case in cases() if case.key == "mma_m16n8k16_f16 row.col integers")
    (launch,) = case.launches(range(differential.SEEDS))
    a, b = (each.view(np.float16).astype(np.float32) for each in launch.arrays[:2])
    assert abs(a).max() == abs(b).max() == 2048
    assert 2**22 < abs(launch.expected[0]).max() <= 2**24
