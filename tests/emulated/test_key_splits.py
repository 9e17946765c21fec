"""Keys of a row on several blocks: right and the same bits whoever arrives last, and each planted mistake is found."""

import re
from dataclasses import replace
from functools import cache
from types import ModuleType

import numpy as np
import pytest

from microbench.emulator import MODES, EmulatedDevice
from tests.emulated import forward_sm70, forward_sm75
from tests.emulated.forward_case import ForwardCase, inputs_of
from tests.emulated.forward_launch import Kernel
from tests.emulated.forward_planted import Bug, outcome, planted
from tests.emulated.forward_tests import BANDS, CAPPED, HALVED, MASKED, Forward, halved

KERNELS = {"sm70": forward_sm70, "sm75": forward_sm75}
CASES = HALVED | {name: halved(case) for name, case in BANDS.items()}
# Parts with and without keys, parts of which rows see nothing, and far rows; a logit that no part has.
SOME = (
    "a window",
    "rows that see nothing",
    "maxima that grow past 2^128",
    "sinks and nothing else",
    "packed and causal",
)
FEATURED, PACKED = (replace(problem, dtype="float16") for problem in (MASKED, CAPPED))
MOST = 8  # parts: more than some rows have tiles

# Two tiles of rows, the second one cut short, and five of keys.
CASE = ForwardCase(heads_q=1, heads_kv=1, lengths=((100, 150),), softcap=50.0, right=50, spread=12.0, dtype="float16")
UNORDERED = "race between blocks: .* is not ordered after the"
ANY = "race|^out|left"
BUGS = {
    "outputs are counted before they are there": Bug(
        "key_splits.cuh",
        "bool arrive()",
        "ptx::count_ordered(counter)",
        "atomicAdd(counter, 1)",
        UNORDERED,
    ),
    "one thread arrives before the others have left theirs": Bug(
        "key_splits.cuh", "bool arrive()", "__syncthreads();", says=UNORDERED
    ),
    "the last by number adds up": Bug(
        "key_splits.cuh",
        "bool arrive()",
        "ptx::store_shared(room, last);",
        "ptx::store_shared(room, part.number == parts - 1);",
        says=UNORDERED,
    ),
    "arrivals of parts that there are not are waited for": Bug(
        "key_splits.cuh",
        "explicit Gather(Rows& rows)",
        "Part::count(launch, part.work(launch))",
        "launch.key_splits",
        says=ANY,
    ),
    "counters are left": Bug("key_splits.cuh", "bool arrive()", "if (last) *counter = 0;", says="left"),
    "all tiles arrive at one counter": Bug(
        "key_splits.cuh", "bool arrive()", "launch.arrivals + part.tile", "launch.arrivals", says=ANY
    ),
    "parts are not rescaled": Bug("key_splits.cuh", "void add(", "weight[o.line(4 * i + 1)]", "1.f"),
    "a part's sum is taken as it is": Bug("key_splits.cuh", "void add(", "weight[h] * sum[h]", "sum[h]"),
    "the last part is left out": Bug("key_splits.cuh", "zero(rows.o[m]);", "number < parts", "number < parts - 1"),
    "two parts have a tile of keys in common": Bug(
        "key_splits.cuh", "bool narrow(", "tiles * (number + 1) / parts", "min(tiles, tiles * (number + 1) / parts + 1)"
    ),
    "parts lie over one another": Bug(
        "key_splits.cuh",
        "ptx::u64 at(",
        "static_cast<long long>(part.tile) * launch.key_splits + number",
        "static_cast<long long>(part.tile) + number",
        says=UNORDERED,
    ),
}


@pytest.fixture(params=KERNELS)
def module(request: pytest.FixtureRequest) -> ModuleType:
    return KERNELS[request.param]


@cache
def forward(module: ModuleType) -> Forward:
    config = module.config_of(32, key_splits=2)
    featured, packed = (Kernel(module.PATH, config, problem) for problem in (FEATURED, PACKED))
    return Forward(module.run, featured, packed)


@pytest.mark.parametrize("case", SOME)
def test_parts_of_a_row_are_right_together(module: ModuleType, case: str) -> None:
    assert not forward(module).why_wrong("random", CASES[case], key_splits=MOST)


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("case", CASES)
def test_any_number_of_parts_is_right_in_every_mode(module: ModuleType, case: str) -> None:
    for mode in MODES:
        for key_splits in (2, 3, MOST):
            assert not forward(module).why_wrong(mode, CASES[case], key_splits=key_splits)


def test_whoever_arrives_last_leaves_the_same_bits(module: ModuleType) -> None:
    case = CASES["maxima that grow"]
    inputs = inputs_of(case)
    kernel = forward(module).featured
    first, *others = (module.run(EmulatedDevice(mode), case, kernel, inputs=inputs, key_splits=3) for mode in MODES)
    for other in others:
        np.testing.assert_array_equal(first.out, other.out)
        np.testing.assert_array_equal(first.lse, other.lse)


@cache
def with_bugs(module: ModuleType) -> Kernel:
    name = module.PATH.partition("/")[0]
    kernel = Kernel(module.PATH, module.config_of(32, key_splits=2), CASE.problem)
    return planted(kernel, f"forward_{name}.cu", BUGS.values())


def found(module: ModuleType, number: int) -> list[str]:
    """By mode."""
    return [outcome(module.run, with_bugs(module), mode, CASE, number, section=1, key_splits=MOST) for mode in MODES]


def test_nothing_is_found_where_no_mistake_is_armed(module: ModuleType) -> None:
    assert found(module, 0) == [""] * len(MODES)


@pytest.mark.parametrize("name", BUGS)
def test_a_planted_mistake_is_found_in_some_mode(module: ModuleType, name: str) -> None:
    said = found(module, 1 + list(BUGS).index(name))
    assert any(re.search(BUGS[name].says, each) for each in said), said
