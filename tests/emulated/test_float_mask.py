"""Float masks inside of every kernel, in every mode, in 16 and 32 bits; and each planted mistake is found."""

from dataclasses import replace
from functools import cache

import pytest

from attention.variant import by_path
from attention.verify import emulated
from attention.verify.builds import builds_of
from attention.verify.problems import Case, case_of
from microbench.emulator import MODES, Mode
from tests.emulated.forward_case import ForwardCase
from tests.emulated.forward_launch import Kernel
from tests.emulated.forward_planted import Bug, outcome, planted
from tests.emulated.forward_sm80 import PATH, config_of, run
from tests.emulated.test_launchers import PATHS

CASE = ForwardCase(batch=2, seq_q=70, seq_kv=133, mask="bias")
EVEN = replace(CASE, seq_kv=134)  # rows begin at whole pairs
FLOATS, PAIR = "void change_mask_of_floats(", "float2 mask_floats("
BUGS = {
    "a float is taken for a raw score": Bug(
        "features/mask.cuh", FLOATS, "__fdividef(1.44269504f, launch.scale_log2)", "1.f"
    ),
    "rows are as far apart as bytes": Bug("features/mask.cuh", FLOATS, "launch.mask_row * kBytes", "launch.mask_row"),
    "every batch has the first one's": Bug("features/mask.cuh", FLOATS, "work.batch * launch.mask_batch", "0"),
    "both of a pair have the same float": Bug("features/mask.cuh", FLOATS, "two.y * scale", "two.x * scale"),
}


def masked(path: str, seed: int) -> list[Case]:
    """Of a kernel's builds with a float mask two of 16 bits and two of 32, with random problems."""
    every = builds_of(path, by_path(path).archs[0])
    builds = [each for each in every if each.bucket[1] <= 128 and dict(each.config.values).get("cta_group", 1) == 1]
    chosen = [each for name in ("BIAS", "BIAS32") for each in [one for one in builds if name in one.asked][:2]]
    return [case_of(each, number, seed, emulated.SMALL) for number, each in enumerate(chosen)]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("path", PATHS)
def test_random_problems_are_right(path: str, mode: Mode) -> None:
    cases = masked(path, 1)
    assert len(cases) >= 3
    wrong = [f"{row.problem}: {row.reason}" for row in emulated.judged(cases, mode) if not row.ok]
    assert not wrong


@cache
def kernel() -> Kernel:
    """All mistakes in one build."""
    return planted(Kernel(PATH, config_of(32, 32), CASE.problem), "forward_sm80.cu", tuple(BUGS.values()))


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("case", [CASE, EVEN], ids=["one by one", "in pairs"])
def test_without_a_mistake_every_row_is_right(emulator: None, case: ForwardCase, mode: Mode) -> None:
    assert not outcome(run, kernel(), mode, case, 0)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("case", [CASE, EVEN], ids=["one by one", "in pairs"])
@pytest.mark.parametrize("bug", BUGS)
def test_a_planted_mistake_is_found(emulator: None, bug: str, case: ForwardCase, mode: Mode) -> None:
    assert outcome(run, kernel(), mode, case, 1 + list(BUGS).index(bug))
