"""Rows that end inside of lines are copied chunk after chunk: right in every mode, and mistakes are found."""

import re
from dataclasses import replace
from functools import cache

import pytest

from attention.variant import Config
from microbench.emulator import MODES
from tests.emulated.forward_case import ForwardCase
from tests.emulated.forward_launch import Kernel
from tests.emulated.forward_planted import Bug, outcome, planted
from tests.emulated.forward_split_keys import PATH, config_of, run
from tests.emulated.forward_tests import Forward

# Tiles of 32 keys of 160 bytes: 12 rows a pass, for which eight threads are too many, and a last pass of eight rows.
SOME = ForwardCase(batch=2, heads_q=6, heads_kv=2, seq_q=3, seq_kv=141, head_dim=80)
CASES = {
    "whole sectors": SOME,
    "rows that begin inside of a sector": replace(SOME, head_dim=72),
    "heads side by side": replace(SOME, head_dim=72, memory="bshd"),
    "eight rows a pass, and a quarter of the threads idle": replace(SOME, head_dim=96),
    "seven rows a pass": replace(SOME, head_dim=144),
    "four of five rows a pass": replace(SOME, head_dim=176),
    "three chunks in four": replace(SOME, head_dim=88, seq_q=1),
    "two chunks": replace(SOME, head_dim=16),
    "values of another width": replace(SOME, head_dim=80, head_dim_v=48),
    "values alone are copied so": replace(SOME, head_dim=64, head_dim_v=48),
    "keys alone are copied so": replace(SOME, head_dim=48, head_dim_v=64),
}
ANY = "race|^out|^lse|out of bounds"
BUGS = {
    "every row is the next one": Bug("consecutive.cuh", "void load(", "from + pass * stride", "from + stride", ANY),
    "chunks lie where no product looks": Bug("consecutive.cuh", "unsigned place(", "Row::bits(row + pass)", "0", ANY),
    "every pass lies as the first one": Bug(
        "consecutive.cuh", "void load(", "places[pass / kPass % kPlaces]", "places[0]", ANY
    ),
    "columns that there are not are read": Bug(
        "consecutive.cuh", "void load(", "is_within(column - lead, columns)", "true", ANY
    ),
    "keys that there are not are read": Bug(
        "consecutive.cuh", "void load(", "(Whole || row + pass < rows)", "true", ANY
    ),
    "rows of the next stage are written": Bug("consecutive.cuh", "void load(", "row >= Count - pass", "false", ANY),
    "threads without a row copy one": Bug("consecutive.cuh", "void load(", "row >= kPass", "false", ANY),
    "some rows are left out": Bug("consecutive.cuh", "void load(", "pass += kPass", "pass += 2 * kPass", ANY),
}
CASE = replace(SOME, head_dim=72)


def kernel_of(case: ForwardCase) -> Kernel:
    return Kernel(PATH, config_of(32, key_warps=2), case.problem)


@cache
def with_bugs() -> Kernel:
    return planted(kernel_of(CASE), "forward_sm80.cu", BUGS.values())


def found(number: int) -> list[str]:
    return [outcome(run, with_bugs(), mode, CASE, number, section=1, key_splits=n) for n in (1, 3) for mode in MODES]


@pytest.mark.parametrize("name", CASES)
def test_rows_are_whole(name: str) -> None:
    case = CASES[name]
    forward = Forward(run, kernel_of(case), kernel_of(replace(case, lengths=((3, 141),))))
    for mode in MODES:
        assert not forward.why_wrong(mode, case, key_splits=2)


@pytest.mark.parametrize(
    ("head_dim", "config"),
    [
        (80, config_of(32, key_warps=2, whole_lines=0)),
        (144, config_of(32, key_warps=2, whole_lines=0)),
        (96, config_of(32, warps=8, key_warps=2)),
        (144, config_of(32, warps=8, key_warps=2)),
        (176, config_of(32, warps=8, key_warps=2)),
    ],
)
def test_rows_are_whole_where_lines_come_in_parts_and_of_eight_warps(head_dim: int, config: Config) -> None:
    case = replace(SOME, head_dim=head_dim)
    kernel = Kernel(PATH, config, case.problem)
    forward = Forward(run, kernel, kernel)
    assert kernel.build != kernel_of(case).build
    assert not any(forward.why_wrong(mode, case, key_splits=2) for mode in MODES)


def test_nothing_is_found_where_no_mistake_is_armed() -> None:
    assert not any(found(0))


@pytest.mark.parametrize("name", BUGS)
def test_a_planted_mistake_is_found_in_some_mode(name: str) -> None:
    said = found(1 + list(BUGS).index(name))
    assert any(re.search(BUGS[name].says, each) for each in said), said
