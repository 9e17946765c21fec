"""Barriers of the sm100a forward: in every order of its roles each phase is complete once, seen, and never missed."""

import random
from dataclasses import replace

import pytest

from microbench.emulator import EmulatedDevice
from tests.emulated.forward_case import ForwardCase
from tests.emulated.forward_launch import Kernel
from tests.emulated.forward_sm100a import PATH, config_of, run
from tests.emulated.role_graph import ARRIVE, COMMIT, WAIT, Graph, Step, Stuck, explored, graph_of, traced, walked

KEYS = 64  # of a tile


def graph(head_dim: int, tiles: int, heads: int = 1, *, apart: bool = False, lengths: int = 0) -> Graph:
    """Of one block that works on a tile of rows of each head, with so many tiles of keys."""
    case = ForwardCase(heads_q=heads, heads_kv=1, seq_q=20, seq_kv=tiles * KEYS, head_dim=head_dim)
    if lengths:
        case = replace(case, lengths=((20, tiles * KEYS - 7),) * lengths, softcap=1.0)
    kernel = traced(Kernel(PATH, config_of(KEYS, dynamic=0), case.problem), "forward_sm100a.cu")
    run(EmulatedDevice("lazy"), case, kernel, blocks=1)
    return graph_of(kernel, apart=apart)


# 64: two query tiles; 192: one. The largest takes 20 s.
ALL_ORDERS = [
    (64, 1),
    (192, 1),
    (192, 2),
    (192, 3),
    pytest.param(64, 2, marks=pytest.mark.slow),
    pytest.param(64, 3, marks=pytest.mark.slow),
]


@pytest.mark.parametrize(("head_dim", "tiles"), ALL_ORDERS)
def test_all_orders_of_roles_end_with_every_phase_seen(head_dim: int, tiles: int) -> None:
    assert explored(graph(head_dim, tiles)) > 1000


@pytest.mark.parametrize("tiles", range(1, 6))
@pytest.mark.parametrize("head_dim", [64, 192])
def test_orders_of_single_warps_over_three_tiles_of_rows_end_too(head_dim: int, tiles: int) -> None:
    made, rng = graph(head_dim, tiles, heads=3, apart=True), random.Random(tiles)
    assert sum(made.weights) == (15 if head_dim == 64 else 11)
    for _ in range(20):
        walked(made, rng)


def test_orders_of_packed_sequences_end_too() -> None:
    made, rng = graph(64, 2, lengths=3, apart=True), random.Random(0)
    assert sum(made.weights) == 16  # one more warp, which clears V
    for _ in range(20):
        walked(made, rng)


def firsts(program: tuple[Step, ...]) -> dict[int, int]:
    """The parity that a role waits for first, by barrier: 1 is the phase before the first, 0 one that must come."""
    return {step.bar: step.parity for step in reversed(program) if step.kind == WAIT}


def awaited(made: Graph) -> set[int]:
    """Barriers whose first phase some role waits for."""
    return {bar for program in made.programs for bar, parity in firsts(program).items() if parity == 0}


def without(made: Graph, role: int, left_out: Step) -> Graph:
    """The graph without a step of a role, wherever it stands."""
    programs = list(made.programs)
    programs[role] = tuple(step for step in programs[role] if step != left_out)
    return replace(made, programs=tuple(programs))


def test_arrivals_that_are_left_out_stop_some_order() -> None:
    made = graph(192, 1)
    wanted = awaited(made)
    arrivals = {
        (role, step)
        for role, program in enumerate(made.programs)
        for step in program
        if step.kind in (ARRIVE, COMMIT) and step.bar in wanted
    }
    assert len(arrivals) >= 8
    for role, step in arrivals:
        with pytest.raises(Stuck):
            explored(without(made, role, step))


def test_a_barrier_that_counts_too_many_or_too_few_is_found() -> None:
    made = graph(192, 1)
    several = [bar for bar in awaited(made) if made.counts[bar] > 1]
    assert len(several) >= 4
    for bar in several:
        for more in (1, -1):
            with pytest.raises(Stuck):
                explored(replace(made, counts=made.counts | {bar: made.counts[bar] + more}))


def test_sums_that_are_not_waited_for_are_found() -> None:
    """Else a softmax may be a tile of rows ahead of the correction, which then misses a phase."""
    made = graph(192, 1, heads=2)
    softmax = min(
        (role for role, weight in enumerate(made.weights) if weight == 4), key=lambda at: len(made.programs[at])
    )
    (empty,) = (bar for bar, parity in firsts(made.programs[softmax]).items() if parity == 1)
    careless = made
    for parity in (0, 1):
        careless = without(careless, softmax, Step(WAIT, empty, parity))
    with pytest.raises(Stuck, match="over twice"):
        explored(careless)
