"""The cases of the differential test: the emulator makes of them what NumPy says, and the comparison can fail."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from microbench.compile import Source
from microbench.emulator import EmulatedDevice, Mode
from microbench.errors import BuildError, DeviceError
from microbench.verify.differential import compare
from microbench.verify.differential.case import Case, Launch
from microbench.verify.differential.catalogue import SEEDS, cases, families, rooms
from microbench.verify.differential.emulated import emulated, results
from microbench.verify.differential.score import Held, Score, score
from microbench.verify.differential.trials import TRIALS, Trial
from microbench.verify.differential.trials import emulated as tried

# Of tensor memory test_tcgen05.py has every layout, by the same kernels.
FIRST = {case.wrapper: index for index, case in reversed([*enumerate(cases())]) if case.wrapper.startswith("tcgen05")}
# One of each kernel and kind of layout; the rest differ by a number. Cases without NumPy's answer only have to run.
CHOSEN = [
    index
    for index, case in enumerate(cases())
    if FIRST.get(case.wrapper, index) == index
    if not case.wrapper.startswith("wgmma")
    or case.layout.split(" ", 1)[0] in ("n32", "n64")
    or case.layout.endswith("K.K swizzle 128")
    if not (case.wrapper.startswith("wgmma") and case.values == "normal")
]


@pytest.mark.parametrize("index", CHOSEN, ids=lambda index: cases()[index].key)
def test_the_emulator_makes_of_a_case_what_numpy_says(index: int) -> None:
    case: Case = cases()[index]
    seeds = range(3) if not case.kernel.startswith("attention") else range(1)
    expected = [each.ravel() for launch in case.launches(seeds) for each in launch.expected]
    modes: tuple[Mode, ...] = ("eager", "lazy") if case.wrapper.startswith("wgmma") else ("lazy",)
    for mode in modes:
        found = emulated(index, seeds, mode)
        if expected:
            counted = score(found, np.concatenate(expected), 2 * case.tolerance)
            assert not counted.differing, counted.worst
        assert found.size


def test_a_wrong_result_is_counted() -> None:
    expected = np.array([1.0, 0.0, np.nan, 1000.0], np.float32)
    found = np.array([1.0, -0.0, np.nan, 1001.0], np.float32)
    assert score(found, expected, 0.0) == Score(1, 0.001)
    assert score(found, expected, 0.002) == Score(0, 0.001)
    assert score(np.array([np.nan]), np.array([1.0]), 1.0) == Score(1, np.inf)


class Emulated:
    """In the place of a GPU."""

    def __init__(self, index: int) -> None:
        self.device = EmulatedDevice(races=False)

    def kernel(self, source: Source) -> tuple[Any, Any]:
        if source.arch.name == "sm70":
            raise BuildError("there is no such instruction")
        loaded = self.device.load(source.text, source.name, kernel=source.kernel, defines=source.defines)
        return loaded, SimpleNamespace(sha256="of the image", nvrtc="12.9")

    def results(self, kernel: Any, launches: list[Launch], doing: str) -> Any:
        return results(self.device, kernel, launches)


def test_a_worker_holds_a_case_by_all_seeds_and_says_what_ran(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compare, "Gpu", Emulated)
    number = next(number for number, case in enumerate(cases()) if case.wrapper == "ffma")
    assert compare.opened(0, "sm90a", 60)(number) == Held(Score(), "of the image", "12.9")
    assert compare.opened(0, "sm70", 60)(number) == Held(unsupported="there is no such instruction")
    monkeypatch.setattr(compare, "emulated", lambda number, seeds: emulated(number, seeds) + (seeds.start > 0))
    assert compare.opened(0, "sm90a", 60)(number).score.differing == 10 * 128


def test_every_case_is_in_one_room_and_one_family() -> None:
    listed = [number for numbers in rooms().values() for family in families(numbers) for number in family]
    assert sorted(listed) == list(range(len(cases())))


def test_seeds_cover_the_whole_exact_range() -> None:
    case = next(case for case in cases() if case.key == "mma_m16n8k16_f16 row.col integers")
    (launch,) = case.launches(range(SEEDS))
    a, b = (each.view(np.float16).astype(np.float32) for each in launch.arrays[:2])
    assert abs(a).max() == abs(b).max() == 2048
    assert 2**22 < abs(launch.expected[0]).max() <= 2**24


@pytest.mark.parametrize("trial", TRIALS, ids=lambda trial: trial.name)
def test_the_emulator_refuses_the_copies_that_a_hopper_gpu_refuses(trial: Trial) -> None:
    if trial.legal:
        np.testing.assert_array_equal(tried(trial), trial.expected)
    else:
        with pytest.raises(DeviceError, match=r"no multiple of 16 bytes|before the tensor"):
            tried(trial)
