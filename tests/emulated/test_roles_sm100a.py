"""Barriers of the sm100a forward: in every order of its roles each phase is complete once, seen, and never missed."""

import random

import pytest

from tests.emulated.role_graph import explored, walked
from tests.emulated.roles_sm100a import EXPLORED, SLOWLY_EXPLORED, WHOLE, Block, Build, blocks_of, graph

ALL_ORDERS = [*EXPLORED, *(pytest.param(block, marks=pytest.mark.slow) for block in SLOWLY_EXPLORED)]


@pytest.mark.parametrize("block", ALL_ORDERS, ids=str)
def test_all_orders_of_roles_end_with_every_phase_seen(block: Block) -> None:
    assert explored(graph(block)) > 1000


@pytest.mark.parametrize("build", WHOLE, ids=str)
def test_every_barrier_of_a_build_is_really_waited_for_in_an_order_that_is_explored(build: Build) -> None:
    """A wait for the phase before the first passes by itself: a ring must go round for one at its empty stages."""
    blocks = blocks_of(build)
    assert set().union(*(graph(block).awaited for block in blocks)) == graph(blocks[0]).counts.keys()


@pytest.mark.parametrize("tiles", range(1, 6))
@pytest.mark.parametrize("head_dim", [64, 192])
def test_orders_of_single_warps_over_three_tiles_of_rows_end_too(head_dim: int, tiles: int) -> None:
    made, rng = graph(Block(head_dim, tiles, heads=3), apart=True), random.Random(tiles)
    assert sum(made.weights) == (15 if head_dim == 64 else 11)
    for _ in range(20):
        walked(made, rng)


def test_orders_of_packed_sequences_end_too() -> None:
    made, rng = graph(Block(64, 2, packed=(2, 2, 2)), apart=True), random.Random(0)
    assert sum(made.weights) == 16  # one more warp, which clears V
    for _ in range(20):
        walked(made, rng)
