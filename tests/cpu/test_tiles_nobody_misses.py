"""Tiles that lost to others on every call on file are not chosen, and say why."""

import pytest

from attention.problem import AttentionProblem
from attention.variant import Config, by_path
from microbench.machine.arch import by_name

FORWARD, PARTS = by_path("sm90a/forward/warp_specialised"), by_path("sm90a/forward/split_keys")
WARPS = by_path("sm80/forward/software_pipelined")


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


def by_warps(head_dim: int, warps: int, arch: str = "sm90a") -> str | None:
    problem = AttentionProblem(2, 8, 8, 2048, 2048, head_dim, dtype="bfloat16", device="cuda")
    assert WARPS.illegal is not None
    return WARPS.illegal(problem, Config((("warps", warps), ("tile_keys", 32))), by_name(arch))


@pytest.mark.parametrize(("head_dim", "warps"), [(64, 4), (144, 8), (192, 8)])
def test_a_barrier_every_32_keys_is_for_where_64_do_not_fit(head_dim: int, warps: int) -> None:
    assert by_warps(head_dim, warps) == "meets a barrier every 32 keys, where 64 fit"


@pytest.mark.parametrize(("head_dim", "warps"), [(96, 4), (144, 4), (192, 4), (256, 8)])
def test_others_meet_one_every_32_keys(head_dim: int, warps: int) -> None:
    assert by_warps(head_dim, warps) is None


def test_eight_warps_keep_32_keys_where_shared_memory_holds_no_64() -> None:
    assert by_warps(160, 8, "sm80") is not None and by_warps(160, 8, "sm86") is None
