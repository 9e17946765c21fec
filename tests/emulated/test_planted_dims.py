"""Mistakes with head dims between those that kernels are tuned at, and with value dims that are unlike: each is found.

K and V then have rows, swizzles, stages and panels of their own, and the last panel of K is filled in part.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache

import pytest

from attention.variant import Config
from microbench.emulator import MODES, Mode
from tests.emulated import forward_sm80, forward_sm90a
from tests.emulated.forward_case import ForwardCase, Outputs
from tests.emulated.forward_launch import Kernel
from tests.emulated.forward_planted import Bug, outcome, planted

# Two tiles of rows and five of keys: rows of K are multiples of 128 bytes, those of V of 32; and the other way.
AMPERE = ForwardCase(heads_q=1, heads_kv=1, seq_q=150, seq_kv=160, head_dim=64, head_dim_v=80)
AMPERE_BUGS = {
    "a lane reads V where it would read Q": Bug(
        "products.cuh",
        "void fetch(",
        "ptx::ldmatrix_trans(to, of_values().of(v + j / kValueDepth * 16 * ValueRow::kBytes, j % kValueDepth));",
        "ptx::ldmatrix_trans(to, by_rows.of(v + j / kValueDepth * 16 * ValueRow::kBytes, j % kValueDepth));",
    ),
    "outputs have as many columns as K": Bug("products.cuh", "void multiply_v(", "i % kValueDepth", "i % kDepth"),
    "a thread reads V where it would read K": Bug(
        "pipeline.cuh", "void begin(", "key - loader.row + v_loader().row", "key"
    ),
    "V has as many columns as K": Bug("pipeline.cuh", "void load_next_v(", "out_columns(launch)", "launch.head_dim"),
    "V's stages are as long as K's": Bug(
        "pipeline.cuh", "unsigned next_v(", "stage + kVBytes", "stage + kKBytes", "^out: |race"
    ),
    "the slice above is as far as one of K": Bug(
        "pipeline.cuh", "unsigned v_above(", "ValueRow::kBytes", "KeyRow::kBytes", "^out: |race"
    ),
    "fragments are taken for fetched that lie elsewhere": Bug(
        "pipeline.cuh", "void seen_tile(", "kPrimes && i < kSlices - 1", "i < kSlices - 1"
    ),
    "outputs have as many columns as Q": Bug(
        "store.cuh", "void store_rows(", "is_within(column, out_columns(launch))", "column < launch.head_dim"
    ),
}

# Five narrow panels of K, and two wide ones of V, of which the last is filled by three quarters.
HOPPER = ForwardCase(heads_q=1, heads_kv=1, lengths=((150, 140),), head_dim=160, head_dim_v=112, right=0)
BEHIND = replace(HOPPER, spare=20)
# More tiles of keys than a ring holds, behind the first one.
LONG = replace(HOPPER, lengths=((150, 330),), right=None)
LOST, UNORDERED = "deadlock: .*mbarrier", "race: wgmma .* not ordered after the write by a copy"
HOPPER_BUGS = {
    "a partly filled panel is not loaded": Bug(
        "produce.cuh", "void load_rows(", "panel < Panels::kCount", "panel < Panels::kCount - 1", f"{LOST}|{UNORDERED}"
    ),
    "panels of V hold as many columns as those of K": Bug(
        "produce.cuh", "void load_rows(", "panel * Panels::kWidth", "panel * KeyPanels::kWidth"
    ),
    "as many bytes of V are awaited as of K": Bug(
        "produce.cuh",
        "void load_tile(",
        "ptx::mbarrier_arrive_expect(full, kBytes);",
        "ptx::mbarrier_arrive_expect(full, kKBytes);",
        f"{LOST}|{UNORDERED}",
    ),
    "steps of K follow one another without panels": Bug(
        "products.cuh", "void multiply_scores(", "i * 16 / KeyPanels::kWidth", "i * 16 / 64"
    ),
    "V's stages are as long as K's": Bug(
        "products.cuh", "void multiply_values(", "v.stage() * kVBytes", "v.stage() * kKBytes", "touches an mbarrier"
    ),
    "panels of V lie as far apart as those of K": Bug(
        "products.cuh", "void multiply_values(", "kKeys * kSpan", "kKeys * KeyPanels::kSpan", "^out: |race"
    ),
    "steps of V are as long as those of K": Bug(
        "products.cuh", "void multiply_values(", "i * 16 * kSpan", "i * 16 * KeyPanels::kSpan", "^out: |race"
    ),
    "rows of V are cleared as rows of K lie": Bug(
        "clear.cuh", "void clear_rows(", "begin * kSpan", "begin * KeyPanels::kSpan", case=BEHIND
    ),
    "K is never given back": Bug(
        "row_softmax.cuh", "unsigned end_keys(", "return give_back_first(bar);", "return 0;", LOST, LONG
    ),
    "outputs have as many columns as Q": Bug(
        "store.cuh",
        "void store_rows(",
        "is_within(column, out_columns(launch))",
        "column < launch.head_dim",
        "wrote beside|out of bounds|race",
    ),
}


@dataclass(frozen=True)
class Planted:
    """A kernel's mistakes, and how a case of them is run."""

    path: str
    config: Config
    case: ForwardCase
    run: Callable[..., Outputs]
    bugs: dict[str, Bug]

    def outcome(self, mode: Mode, number: int, case: ForwardCase | None = None) -> str:
        """What is found with the mistake of this number armed; 0 is none."""
        return outcome(self.run, armed(self.path), mode, case or self.case, number, section=1)


PLANTED = {
    each.path: each
    for each in (
        Planted(forward_sm80.PATH, forward_sm80.config_of(32, 16), AMPERE, forward_sm80.run, AMPERE_BUGS),
        Planted(forward_sm90a.PATH, forward_sm90a.config_of(64), HOPPER, forward_sm90a.run, HOPPER_BUGS),
    )
}


@cache
def armed(path: str) -> Kernel:
    """The kernel with all of its mistakes."""
    each = PLANTED[path]
    kernel = Kernel(path, each.config, each.case.problem)
    return planted(kernel, f"forward_{path.split('/')[0]}.cu", each.bugs.values())


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("path", PLANTED)
def test_nothing_is_found_where_no_mistake_is_armed(path: str, mode: Mode) -> None:
    each = PLANTED[path]
    cases = {bug.case for bug in each.bugs.values()}
    assert {each.outcome(mode, 0, case) for case in cases} == {""}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(("path", "name"), [(path, name) for path, each in PLANTED.items() for name in each.bugs])
def test_a_planted_mistake_is_found(path: str, name: str, mode: Mode) -> None:
    each = PLANTED[path]
    bug = each.bugs[name]
    assert re.search(bug.says, each.outcome(mode, 1 + list(each.bugs).index(name), bug.case))
