"""Sequences that use a part of their slots alone: every kernel, in every mode, amid NaN; planted mistakes are found."""

import re
from dataclasses import replace
from functools import cache
from typing import Any

import pytest

from attention.variant import Config, by_path
from attention.verify import emulated
from attention.verify.builds import builds_of
from attention.verify.problems import Case, case_of
from microbench.emulator import MODES, EmulatedDevice, Mode
from tests.emulated import forward_sm80, forward_sm90a, forward_sm100a
from tests.emulated.forward_case import inputs_of, judge
from tests.emulated.forward_launch import Kernel
from tests.emulated.forward_planted import Bug, outcome, planted
from tests.emulated.ranges_planted import BUGS, CASE
from tests.emulated.test_launchers import OF_EVERY_FEATURE

CLEARED = Bug("clear.cuh", "void clear(", "work.keys - (work.last - 1) * kKeys", "kKeys")
FULL = replace(CASE, right=None)


def ranged(path: str, seed: int) -> list[Case]:
    """Of a kernel's builds with ranges one alone, one causal, one packed and one in company, with random problems."""
    every = builds_of(path, by_path(path).archs[0])
    builds = [each for each in every if "RANGES" in each.asked and each.bucket[1] <= 128 and emulated.fits(each)]
    wanted = ({"RANGES"}, {"CAUSAL", "RANGES"}, {"CAUSAL", "RANGES", "VARLEN"})
    chosen = [next(each for each in builds if each.asked == asked) for asked in wanted]
    chosen.append(next(each for each in builds if {"WINDOW", "ALIBI", "SINKS"} <= each.asked))
    return [case_of(each, number, seed, emulated.SMALL) for number, each in enumerate(chosen)]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("path", OF_EVERY_FEATURE)
def test_random_problems_are_right(path: str, mode: Mode) -> None:
    wrong = [f"{row.problem}: {row.reason}" for row in emulated.judged(ranged(path, 1), mode) if not row.ok]
    assert not wrong


@cache
def kernel() -> Kernel:
    """All mistakes in one build."""
    sm80 = Kernel(forward_sm80.PATH, forward_sm80.config_of(32, 32), CASE.problem)
    return planted(sm80, "forward_sm80.cu", tuple(BUGS.values()))


@cache
def uncleared() -> Kernel:
    sm90a = Kernel(forward_sm90a.PATH, forward_sm90a.config_of(64, q_in_registers=1), FULL.problem)
    return planted(sm90a, "forward_sm90a.cu", (CLEARED,))


def test_without_numbers_all_rows_count(emulator: None) -> None:
    case = replace(CASE, ranges=(), aligned="top_left")
    inputs, device = inputs_of(case), EmulatedDevice()
    assert not judge(case, inputs, forward_sm80.run(device, case, kernel(), inputs=inputs))


@pytest.mark.parametrize("mode", MODES)
def test_without_a_mistake_every_row_of_every_slot_is_right(emulator: None, mode: Mode) -> None:
    assert not outcome(forward_sm80.run, kernel(), mode, CASE, 0)
    assert not outcome(forward_sm90a.run, uncleared(), mode, FULL, 0)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("bug", BUGS)
def test_a_planted_mistake_is_found(emulator: None, bug: str, mode: Mode) -> None:
    said = outcome(forward_sm80.run, kernel(), mode, CASE, 1 + list(BUGS).index(bug))
    assert re.search(BUGS[bug].says, said), said


TILES = (
    (forward_sm80, forward_sm80.config_of(32, 16)),
    (forward_sm90a, forward_sm90a.config_of(64)),
    (forward_sm100a, forward_sm100a.config_of(64)),
)


@pytest.mark.parametrize("dims", [(192, 128), (64, 128)], ids=str)
@pytest.mark.parametrize("tile", TILES, ids=lambda tile: tile[0].PATH)
def test_rows_that_no_query_uses_have_as_many_columns_as_values(
    emulator: None, tile: tuple[Any, Config], dims: tuple[int, int]
) -> None:
    (of, config), case = tile, replace(CASE, heads_q=1, head_dim=dims[0], head_dim_v=dims[1])
    inputs, kernel = inputs_of(case), Kernel(of.PATH, config, case.problem)
    assert not judge(case, inputs, of.run(EmulatedDevice(), case, kernel, inputs=inputs))


@pytest.mark.parametrize("mode", MODES)
def test_values_behind_the_used_keys_must_be_cleared(emulator: None, mode: Mode) -> None:
    assert outcome(forward_sm90a.run, uncleared(), mode, FULL, 1)
