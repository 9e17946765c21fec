"""Masks inside of every kernel, in every mode: bytes, floats of 16 and 32 bits; and each planted mistake is found."""

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
from tests.emulated.test_launchers import OF_EVERY_FEATURE

FLOATS = ForwardCase(batch=2, seq_q=70, seq_kv=133, mask="bias")
BYTES = replace(FLOATS, mask="full")
FILE, ALL = "features/mask.cuh", "MaskAt(const Launch& launch"
ODD, EVEN = "one by one", "in twos"  # rows of an even number of keys begin at whole twos, of one load each
KEYS = {ODD: 133, EVEN: 134}
OF_ALL = {
    "every batch has the first one's": Bug(FILE, "mask_of(const Launch& launch", "work.batch * launch.mask_batch", "0"),
    "the lower row has the upper one's": Bug(FILE, ALL, "h * Scores::kStep", "0"),
    "rows beyond the last are read": Bug(FILE, ALL, "work.queries - 1", "1 << 20"),
}
ONE_WAY = {
    "the second of two has the first one's": (ODD, Bug(FILE, "one_by_one(", "min(key + 1, last)", "min(key, last)")),
    "two at an odd place are read together": (ODD, Bug(FILE, ALL, "places % (2 * kMaskBytes) == 0", "true")),
    "keys beyond the last are read": (EVEN, Bug(FILE, ALL, "column + Scores::column(Scores::kCount - 1)", "0")),
}
OF_FLOATS = {
    "a float is a raw score": Bug(FILE, "float mask_scale(", "__fdividef(1.44269504f, launch.scale_log2)", "1.f"),
    "both have the first float": Bug(FILE, "void change_two(", "bias.y * scale", "bias.x * scale"),
}
OF_BYTES = {
    "a byte that hides shows": Bug(FILE, "void change_two(", "!(two & 0xff)", "false"),
    "both have the first byte": Bug(FILE, "void change_two(", "two >> 8", "two & 0xff"),
}
CASES = {"floats": FLOATS, "bytes": BYTES}
BUGS = {
    kind: {**OF_ALL, **own, **{name: bug for name, (_, bug) in ONE_WAY.items()}}
    for kind, own in (("floats", OF_FLOATS), ("bytes", OF_BYTES))
}
PLANTED = [
    (kind, bug, way)
    for kind, bugs in BUGS.items()
    for bug in bugs
    for way in KEYS
    if bug not in ONE_WAY or ONE_WAY[bug][0] == way
]


def at(kind: str, way: str) -> ForwardCase:
    """The problem, and how many keys make its rows be read so."""
    return replace(CASES[kind], seq_kv=KEYS[way])


def masked(path: str, seed: int) -> list[Case]:
    """Of a kernel's builds with a mask two of each kind, with random problems."""
    every = builds_of(path, by_path(path).archs[0])
    builds = [each for each in every if each.bucket[1] <= 128 and dict(each.config.values).get("cta_group", 1) == 1]
    names = ("MASK", "BIAS", "BIAS32")
    chosen = [each for name in names for each in [one for one in builds if name in one.asked][:2]]
    return [case_of(each, number, seed, emulated.SMALL) for number, each in enumerate(chosen)]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("path", OF_EVERY_FEATURE)
def test_random_problems_are_right(path: str, mode: Mode) -> None:
    cases = masked(path, 1)
    assert len(cases) >= 5
    wrong = [f"{row.problem}: {row.reason}" for row in emulated.judged(cases, mode) if not row.ok]
    assert not wrong


@cache
def kernel(kind: str) -> Kernel:
    """All mistakes in one build."""
    problem = CASES[kind].problem
    return planted(Kernel(PATH, config_of(32, 32), problem), "forward_sm80.cu", tuple(BUGS[kind].values()))


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("way", KEYS)
@pytest.mark.parametrize("kind", BUGS)
def test_without_a_mistake_every_row_is_right(emulator: None, kind: str, way: str, mode: Mode) -> None:
    assert not outcome(run, kernel(kind), mode, at(kind, way), 0)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(("kind", "bug", "way"), PLANTED)
def test_a_planted_mistake_is_found(emulator: None, kind: str, bug: str, way: str, mode: Mode) -> None:
    assert outcome(run, kernel(kind), mode, at(kind, way), 1 + list(BUGS[kind]).index(bug))
