"""Tiles of Hopper's forward that lost to others on every call on file are not chosen, and say why."""

import pytest

from attention.problem import AttentionProblem
from attention.variant import Config, by_path
from microbench.machine.arch import by_name

FORWARD, PARTS = by_path("sm90a/forward/warp_specialised"), by_path("sm90a/forward/split_keys")


def against(head_dim: int, keys: int, held: int) -> str | None:
    problem = AttentionProblem(2, 8, 8, 2048, 2048, head_dim, dtype="bfloat16", device="cuda")
    sizes = {"tile_keys": keys, "warpgroups": 2, "stages": 2, "q_in_registers": held}
    return FORWARD.illegal(problem, Config(tuple(sizes.items())), by_name("sm90a"))


@pytest.mark.parametrize(("head_dim", "keys", "held"), [(64, 160, 0), (96, 144, 1), (128, 144, 0), (128, 112, 1)])
def test_they_are_illegal_with_a_reason(head_dim: int, keys: int, held: int) -> None:
    assert (against(head_dim, keys, held) or "").startswith("loses to")


@pytest.mark.parametrize(("head_dim", "keys", "held"), [(128, 160, 0), (96, 112, 1), (128, 64, 1), (128, 128, 1)])
def test_their_neighbours_are_legal(head_dim: int, keys: int, held: int) -> None:
    assert against(head_dim, keys, held) is None


def test_parts_of_keys_have_their_own_tiles() -> None:
    problem = AttentionProblem(1, 4, 4, 128, 9728, 80, dtype="bfloat16", device="cuda")
    legal = {
        dict(config.values)["tile_keys"]
        for config in PARTS.configs()
        if PARTS.illegal and not PARTS.illegal(problem, config, by_name("sm90a"))
    }
    assert 144 in legal
