"""Mistakes in the graph of the sm100a forward's roles: arrivals left out, counts that are off, waits left out."""

import random
from collections.abc import Iterator
from dataclasses import replace

import pytest

from tests.emulated.role_graph import WAIT, Graph, Step, Stuck, explored, walked
from tests.emulated.roles_sm100a import WHOLE, Block, Build, blocks_of, graph


def without(made: Graph, role: int, left_out: Step) -> Graph:
    """The graph without a step of a role, wherever it stands."""
    programs = list(made.programs)
    programs[role] = tuple(step for step in programs[role] if step != left_out)
    return replace(made, programs=tuple(programs))


def awaited_somewhere(build: Build) -> Iterator[tuple[int, Graph]]:
    """Every barrier of a build, with the graph of the first block that really waits for it."""
    graphs = [graph(block) for block in blocks_of(build)]
    for bar in graphs[0].counts:
        yield bar, next(made for made in graphs if bar in made.awaited)


def is_found(made: Graph, orders: int = 1) -> bool:
    """Whether one of some orders goes wrong: each is among all that are explored."""
    for seed in range(orders):
        try:
            walked(made, random.Random(seed))
        except Stuck:
            return True
    return False


@pytest.mark.parametrize("build", WHOLE, ids=str)
def test_arrivals_of_any_role_that_are_left_out_at_any_barrier_are_found(build: Build) -> None:
    for bar, made in awaited_somewhere(build):
        assert not is_found(made)
        arrivals = [
            (role, step)
            for role, program in enumerate(made.programs)
            for step in dict.fromkeys(program)
            if step.kind != WAIT and step.bar == bar
        ]
        assert arrivals
        for role, step in arrivals:
            assert is_found(without(made, role, step)), f"barrier {bar} without {step} of role {role}"


@pytest.mark.parametrize("build", WHOLE, ids=str)
def test_a_barrier_that_counts_too_many_or_too_few_is_found(build: Build) -> None:
    for bar, made in awaited_somewhere(build):
        for count in {made.counts[bar] + 1, max(1, made.counts[bar] - 1)} - {made.counts[bar]}:
            wrong = replace(made, counts=made.counts | {bar: count})
            assert is_found(wrong, orders=20), f"barrier {bar} of {made.counts[bar]} that counts {count}"


def test_sums_that_are_not_waited_for_are_found() -> None:
    """Else a softmax may be a tile of rows ahead of the correction, which then misses a phase."""
    made = graph(Block(192, 1, heads=2))
    softmax = min(
        (role for role, weight in enumerate(made.weights) if weight == 4), key=lambda at: len(made.programs[at])
    )
    passed = {step.bar: step.parity for step in reversed(made.programs[softmax]) if step.kind == WAIT}
    (empty,) = (bar for bar, parity in passed.items() if parity == 1)
    careless = made
    for parity in (0, 1):
        careless = without(careless, softmax, Step(WAIT, empty, parity))
    with pytest.raises(Stuck, match="over twice"):
        explored(careless)
