"""Barriers of the sm100a forward by pairs: roles of both blocks, in every order of what one block does to the other."""

import random
from dataclasses import replace

import pytest

from microbench.emulator import EmulatedDevice
from tests.emulated.forward_case import ForwardCase
from tests.emulated.forward_launch import Kernel
from tests.emulated.forward_sm100a import PATH, config_of, run
from tests.emulated.role_graph import (
    ARRIVE,
    COMMIT,
    WAIT,
    WINDOW,
    Graph,
    Stuck,
    between_blocks,
    explored,
    graph_of,
    traced,
    walked,
)

KEYS = 64  # of a tile


def graph(head_dim: int, tiles: int, heads: int = 1, *, ring: int = 0, apart: bool = False) -> Graph:
    """Of one pair that works on a tile of rows of each head, with so many tiles of keys.

    `ring` stages stand for what shared memory holds, as in roles_sm100a.
    """
    stages = (("STAGES", ring),) if ring else ()
    case = ForwardCase(heads_q=heads, heads_kv=1, seq_q=20, seq_kv=tiles * KEYS, head_dim=head_dim)
    config = config_of(KEYS, dynamic=0, cta_group=2)
    kernel = traced(Kernel(PATH, config, case.problem, changes=stages), "forward_sm100a.cu")
    run(EmulatedDevice("lazy"), case, kernel, blocks=2)
    return graph_of(kernel, apart=apart)


# 64: two query tiles; 192: one. Each takes up to 20 s.
ALL_ORDERS = [
    (192, 1),
    pytest.param(64, 1, marks=pytest.mark.slow),
    pytest.param(192, 2, marks=pytest.mark.slow),
]
REDUCED = [
    (192, 3, 2),
    (64, 3, 2),
    pytest.param(192, 3, 0, marks=pytest.mark.slow),
    pytest.param(64, 2, 0, marks=pytest.mark.slow),
]


@pytest.mark.parametrize(("head_dim", "tiles"), ALL_ORDERS)
def test_all_orders_of_what_blocks_do_to_each_other_end_with_every_phase_seen(head_dim: int, tiles: int) -> None:
    assert explored(between_blocks(graph(head_dim, tiles))) > 5000


@pytest.mark.parametrize(("head_dim", "tiles", "ring"), REDUCED)
def test_so_do_all_orders_over_more_tiles_of_keys(head_dim: int, tiles: int, ring: int) -> None:
    assert explored(between_blocks(graph(head_dim, tiles, ring=ring)), reduced=True) > 50_000


def test_a_reduction_explores_fewer_states_and_leaves_out_barriers_where_both_blocks_arrive() -> None:
    made = between_blocks(graph(192, 1))
    assert explored(made, reduced=True) < explored(made)
    assert {bar for bar, count in made.counts.items() if count > 1} <= made.counts.keys() - made.sole


@pytest.mark.parametrize("tiles", range(1, 6))
@pytest.mark.parametrize("head_dim", [64, 192])
def test_orders_of_single_warps_of_both_blocks_over_three_tiles_of_rows_end_too(head_dim: int, tiles: int) -> None:
    made, rng = graph(head_dim, tiles, heads=3, apart=True), random.Random(tiles)
    assert sum(made.weights) == 2 * (15 if head_dim == 64 else 11)
    for _ in range(10):
        walked(made, rng)


def test_both_blocks_use_barriers_of_the_other_one_for_operands_p_and_results() -> None:
    made = between_blocks(graph(192, 1))
    # Of each block q_full, q_empty, two of kv_full and of kv_empty, of s_full and o_full one; ready in one alone.
    assert len(made.counts) == 17 and {bar >> WINDOW for bar in made.counts} == {0, 1}
    assert sorted(count for bar, count in made.counts.items() if count > 1) == [2, 2, 2, 16]


def without(made: Graph, role: int, place: int) -> Graph:
    """The graph without one step of a role."""
    programs = list(made.programs)
    programs[role] = programs[role][:place] + programs[role][place + 1 :]
    return replace(made, programs=tuple(programs))


def test_arrivals_that_are_left_out_stop_some_order() -> None:
    made = between_blocks(graph(192, 1))
    awaited = {step.bar for program in made.programs for step in program if step.kind == WAIT and step.parity == 0}
    arrivals = [
        (role, place)
        for role, program in enumerate(made.programs)
        for place, step in enumerate(program)
        if step.kind in (ARRIVE, COMMIT) and step.bar in awaited
    ]
    assert len(arrivals) >= 9
    for role, place in arrivals:
        for reduced in (False, True):
            with pytest.raises(Stuck):
                explored(without(made, role, place), reduced=reduced)


def test_a_barrier_that_counts_one_block_alone_is_found() -> None:
    made = between_blocks(graph(192, 1))
    for bar in (bar for bar, count in made.counts.items() if count > 1):
        for reduced in (False, True):
            with pytest.raises(Stuck):
                explored(replace(made, counts=made.counts | {bar: made.counts[bar] // 2}), reduced=reduced)
