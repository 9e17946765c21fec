"""Tensor memory of the sm100a forward by the emulator's ledger: disjoint lives, 512 columns, nothing left behind."""

from functools import cache

import pytest

from attention.kernels.sm100a.forward.tensor_memory.arguments import COLUMNS, shape_of
from microbench.emulator import MODES, EmulatedDevice, Mode
from microbench.emulator.tensor_trace import traced
from tests.emulated import test_forward_pair_sm100a as pairs
from tests.emulated.forward_launch import Kernel
from tests.emulated.forward_planted import Bug, planted
from tests.emulated.forward_sm100a import PATH, run
from tests.emulated.tensor_ledger import GROUPS, OUTPUTS, SCORES, WEIGHTS, Ledger, ledger_of
from tests.emulated.test_forward_sm100a import WIDTHS

WANTED = (64, 128, "192 and 128", 256)


@cache
def ledger(width: int | str, mode: Mode = "lazy", armed: int | None = None) -> Ledger:
    """Of one block that works on all tiles of a case: two of rows or more, and three or more of keys."""
    case, config = WIDTHS[width]
    kernel = Kernel(PATH, config, case.problem)
    if armed is not None:
        kernel = planted(kernel, "forward_sm100a.cu", BUGS)
        kernel.library(races=False).plant(armed)
    with traced() as trace:
        run(EmulatedDevice(mode, races=armed is None), case, kernel, blocks=1)
    return ledger_of(trace.rows, shape_of(kernel.problem, kernel.config))


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("width", WANTED)
def test_no_two_things_have_the_same_columns_at_the_same_time(width: int | str, mode: Mode) -> None:
    made = ledger(width, mode)
    assert len(made.of(SCORES)) == len(made.of(WEIGHTS)) >= 6 * GROUPS
    assert len(made.of(OUTPUTS)) >= 2 * GROUPS
    assert not [*made.clashes()]


@pytest.mark.parametrize("width", WANTED)
def test_p_lies_in_the_first_half_of_its_own_scores_and_outputs_beside_both(width: int | str) -> None:
    made, (case, config) = ledger(width), WIDTHS[width]
    shape = shape_of(case.problem, config)
    for scores in made.of(SCORES):
        p = made.lives[WEIGHTS, scores.number, scores.group]
        assert len(scores.columns) == shape.tile_keys
        assert sorted(p.columns) == sorted(scores.columns)[: shape.tile_keys // 2]
        assert p.begins > scores.ends
    outputs = set().union(*(life.columns for life in made.of(OUTPUTS)))
    assert {len(life.columns) for life in made.of(OUTPUTS)} == {shape.value_dim}
    assert len(outputs) == shape.query_tiles * shape.value_dim
    assert outputs.isdisjoint(set().union(*(life.columns for life in made.of(SCORES))))


@pytest.mark.parametrize("width", WANTED)
def test_at_most_512_columns_are_allocated_and_none_at_the_end(width: int | str) -> None:
    made = ledger(width)
    assert 0 < max(len(columns) for columns in made.allocated) <= COLUMNS
    assert made.allocated[0] and not made.allocated[-1]
    assert not made.strays


@pytest.mark.parametrize("block", [0, 1])
@pytest.mark.parametrize("width", WANTED)
def test_so_it_is_in_either_block_of_a_pair(width: int | str, block: int) -> None:
    case, config = pairs.WIDTHS[width]
    kernel = Kernel(PATH, config, case.problem)
    with traced() as trace:
        run(EmulatedDevice("lazy"), case, kernel, blocks=2)
    made = ledger_of(trace.rows[trace.rows["block"] == block], shape_of(kernel.problem, kernel.config))
    assert len(made.of(SCORES)) == len(made.of(WEIGHTS)) >= 2 * GROUPS and len(made.of(OUTPUTS)) >= 2 * GROUPS
    assert not [*made.clashes()] and not made.strays
    assert 0 < max(len(columns) for columns in made.allocated) <= COLUMNS
    assert made.allocated[0] and not made.allocated[-1]


def test_outputs_are_rescaled_while_they_live_and_nothing_else_is() -> None:
    made = ledger(64)
    assert made.corrections
    for at, group, columns in made.corrections:
        living = [life for life in made.lives.values() if life.group == group and life.begins < at < life.ends]
        assert [life.what for life in living if life.columns & columns] == [OUTPUTS]


# What comes to lie over what. The kernel has them all, and one is armed.
MISTAKES = {
    "outputs begin amid the scores of odd turns": (
        Bug("multiply.cuh", "O += P V", "kOutputs", "(kOutputs - 96)"),
        {SCORES, OUTPUTS},
    ),
    "scores of odd turns lie over those of even ones": (
        Bug("multiply.cuh", "const unsigned to = memory", "scores.stage()", "0u"),
        {SCORES},
    ),
    "P of odd turns lies over scores of even ones": (
        Bug("softmax.cuh", "const unsigned to = memory", "turn.stage()", "0u"),
        {SCORES, WEIGHTS},
    ),
}
BUGS = tuple(bug for bug, _ in MISTAKES.values())


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistaken_column_is_a_clash_in_the_ledger(name: str) -> None:
    """With the race report off, which would stop most of them."""
    made = ledger(256, armed=1 + [*MISTAKES].index(name))
    assert MISTAKES[name][1] in [{life.what for life in pair} for pair in made.clashes()]


def test_no_mistake_is_no_clash() -> None:
    assert not [*ledger(256, armed=0).clashes()]
