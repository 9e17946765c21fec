"""Rows that begin inside of a sector lie eight columns later: right in every mode, and mistakes are found."""

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import pytest

from microbench.emulator import MODES, Mode
from tests.emulated import forward_sm80, forward_sm90a, forward_sm90a_split, forward_split_keys
from tests.emulated.forward_case import ForwardCase
from tests.emulated.forward_launch import Kernel
from tests.emulated.forward_planted import Bug, outcome, planted
from tests.emulated.forward_tests import Forward

# Two heads of K and V side by side: all rows of the second begin in the middle of 32 bytes.
SOME = ForwardCase(batch=2, heads_q=4, heads_kv=2, seq_q=70, seq_kv=141, head_dim=72, right=0, memory="bshd")
FEW = replace(SOME, seq_q=3, right=None)
MANY = replace(SOME, lengths=((70, 100), (1, 133), (0, 5), (5, 0)))
USED = replace(SOME, ranges=((40, 100, 20), (70, 90, 0)))


@dataclass(frozen=True)
class Built:
    """A kernel of many rows or of few, and what its launch is told."""

    run: Callable[..., Any]
    path: str
    config: Any
    told: tuple[tuple[str, int], ...] = ()

    def kernel(self, case: ForwardCase) -> Kernel:
        return Kernel(self.path, self.config, case.problem)


HOPPER = Built(forward_sm90a.run, forward_sm90a.PATH, forward_sm90a.config_of(32))
SPLIT = Built(
    forward_sm90a_split.run, forward_sm90a_split.PATH, forward_sm90a_split.config_of(32), (("key_splits", 3),)
)
AMPERE = Built(forward_sm80.run, forward_sm80.PATH, forward_sm80.config_of(32, 16, warp_rows=16))
SHARED = Built(
    *(forward_split_keys.run, forward_split_keys.PATH, forward_split_keys.config_of(32, key_warps=2)),
    (("key_splits", 2), ("section", 1)),
)
ALONE = replace(SHARED, config=forward_split_keys.config_of(32))
CASES = {
    "Hopper": (HOPPER, SOME),
    "Hopper, heads of a group share rows": (HOPPER, FEW),
    "Hopper, packed": (HOPPER, MANY),
    "Hopper, ranges": (HOPPER, USED),
    "Hopper, three panels": (HOPPER, replace(SOME, head_dim=152)),
    "Hopper, one panel": (HOPPER, replace(SOME, head_dim=24)),
    "Hopper, parts of keys": (SPLIT, replace(SOME, head_dim=88)),
    "Hopper, parts that heads of a group share": (SPLIT, FEW),
    "Ampere": (AMPERE, SOME),
    "Ampere, packed": (AMPERE, replace(MANY, head_dim=40)),
    "few rows": (ALONE, replace(SOME, head_dim=104)),
    "few rows, packed": (ALONE, MANY),
    "one warp's rows": (SHARED, FEW),
    "one warp's rows, side by side": (SHARED, replace(FEW, head_dim=56)),
    "one query": (SHARED, replace(FEW, seq_q=1, head_dim=136)),
}
OTHER_WAYS = {
    "each head by itself": replace(SOME, memory="bhsd"),
    "an odd number of heads": replace(SOME, heads_q=3, heads_kv=3),
}
ANY = "race|^out|^lse|out of bounds|wrote beside"
# By the kernel that has it: of rows of one warp, of parts that Hopper's warpgroups leave, and of its tiles.
BUGS = {
    "K begins where it lies, and Q before": (
        SHARED,
        Bug("key_loop.cuh", "void aim(", "k_loader.column - k_lead", "k_loader.column", ANY),
    ),
    "V is read from eight columns before, and lies there": (
        SHARED,
        Bug("consecutive.cuh", "void load(", "column - lead", "column", ANY),
    ),
    "outputs are stored where they are held": (
        SHARED,
        Bug("store_group.cuh", "void store_spans(", "column - lead_of_outputs(launch, work)", "column", ANY),
    ),
    "the last columns are nobody's": (
        SHARED,
        Bug(
            "store_group.cuh",
            "void store_spans(",
            "is_within(first + at, out_columns(launch))",
            "is_within(column + at, out_columns(launch))",
            ANY,
        ),
    ),
    "Q of a group lies as it is read": (
        SHARED,
        Bug("pipeline.cuh", "void load_group(", "loader.column - k_lead", "loader.column", ANY),
    ),
    "K of many rows lies as it is read": (
        AMPERE,
        Bug("pipeline.cuh", "kv_head * launch.k_head, key", "loader.column - k_lead", "loader.column", ANY),
    ),
    "columns before V's are read": (
        AMPERE,
        Bug("load.cuh", "void load(", "is_within(column + group * 8 * kGroup - lead, columns)", "true", ANY),
    ),
    "Q lies as it is read": (
        HOPPER,
        Bug("produce.cuh", "void load_queries(", "-lead_of_keys(launch, kv_head_of(launch, work))", "0", ANY),
    ),
    "V lies as it is read": (HOPPER, Bug("produce.cuh", "void produce(", "-lead_of_values(launch, kv_head)", "0", ANY)),
    "K lies as it is read": (HOPPER, Bug("produce.cuh", "void produce(", "-lead_of_keys(launch, kv_head)", "0", ANY)),
    "a tile's outputs are stored where they are held": (
        HOPPER,
        Bug("store.cuh", "void store_rows(", "lead_of_outputs(launch, work)", "0", ANY),
    ),
    "outputs of parts are stored where they are held": (
        SPLIT,
        Bug("partials.cuh", "void store(", "held - lead_of_outputs(launch, work)", "held", ANY),
    ),
    "the lse is that of a lane which has none": (
        SPLIT,
        Bug("partials.cuh", "void store(", "held == 0", "column == 0", ANY),
    ),
}


def why_wrong(built: Built, mode: Mode, case: ForwardCase) -> str:
    kernel = built.kernel(case)
    return Forward(built.run, kernel, kernel).why_wrong(mode, case, **dict(built.told))


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", CASES)
def test_rows_of_every_other_head_are_right(name: str, mode: Mode) -> None:
    built, case = CASES[name]
    assert "LEAD" in built.kernel(case).defines
    assert not why_wrong(built, mode, case)


@pytest.mark.parametrize("name", OTHER_WAYS)
@pytest.mark.parametrize("built", [HOPPER, ALONE], ids=["Hopper", "few rows"])
def test_so_are_rows_that_lie_otherwise(name: str, built: Built) -> None:
    assert not why_wrong(built, "random", OTHER_WAYS[name])


def test_heads_may_be_taken_for_late_that_are_not() -> None:
    """As those of a tensor that itself begins inside of a sector: they are read as they lie."""
    wrong = Bug("lead.cuh", "lead_of_keys(", "launch.k_late & kv_head", "launch.k_late")
    kernel = planted(SHARED.kernel(FEW), "forward_sm80.cu", [wrong])
    assert not any(outcome(SHARED.run, kernel, mode, FEW, 1, **dict(SHARED.told)) for mode in MODES)


def case_of(built: Built) -> ForwardCase:
    return FEW if built is SHARED else SOME


@cache
def with_bugs(built: Built) -> Kernel:
    file = "forward_sm90a.cu" if built in (HOPPER, SPLIT) else "forward_sm80.cu"
    return planted(built.kernel(case_of(built)), file, [bug for of, bug in BUGS.values() if of is built])


def found(built: Built, number: int) -> list[str]:
    return [outcome(built.run, with_bugs(built), mode, case_of(built), number, **dict(built.told)) for mode in MODES]


@pytest.mark.parametrize(
    "built", [SHARED, AMPERE, HOPPER, SPLIT], ids=["few rows", "Ampere", "Hopper", "parts of keys"]
)
def test_nothing_is_found_where_no_mistake_is_armed(built: Built) -> None:
    assert not any(found(built, 0))


@pytest.mark.parametrize("name", BUGS)
def test_a_planted_mistake_is_found_in_some_mode(name: str) -> None:
    built, bug = BUGS[name]
    said = found(built, 1 + [each for of, each in BUGS.values() if of is built].index(bug))
    assert any(re.search(bug.says, each) for each in said), said
