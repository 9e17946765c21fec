"""Which calls' query heads share a warpgroup's rows on Hopper, and what follows for a launch."""

from dataclasses import replace

import pytest

from attention.kernels.common.family import fill
from attention.kernels.sm90a.forward.split_keys import arguments as split
from attention.kernels.sm90a.forward.warp_specialised import arguments as whole
from attention.kernels.sm90a.packed import GROUP_ROWS, packed, queries_of
from attention.problem import AttentionProblem
from attention.variant import Config, by_path
from microbench.machine.arch import by_name

FEW = AttentionProblem(2, 32, 4, 11, 4096, 128, dtype="bfloat16", device="cuda", causal=True, alignment="bottom_right")
CONFIG = Config((("tile_keys", 128), ("warpgroups", 2), ("stages", 2), ("q_in_registers", 0)))
HOPPER = by_path("sm90a/forward/warp_specialised")


@pytest.mark.parametrize(
    ("changes", "group"),
    [
        ({}, 8),
        ({"ranges": True}, 8),
        ({"sinks": True, "window": (64, 0)}, 8),
        ({"varlen": True, "tokens_q": 22, "tokens_kv": 8192}, 8),
        ({"heads_kv": 32}, 0),  # of one head each
        ({"seq_q": 128}, 0),  # as many tiles of rows either way
        ({"seq_q": 64}, 8),  # half as many
        ({"alibi": True}, 0),
        ({"mask": "bool"}, 0),
        ({"head_dim": 256}, 0),
        ({"head_dim": 192, "head_dim_v": 128}, 8),
        ({"heads_q": 128, "heads_kv": 1}, 0),  # more than a warpgroup has rows
    ],
)
def test_heads_share_rows_where_that_halves_their_tiles(changes: dict[str, object], group: int) -> None:
    if "head_dim" in changes:
        changes = {"head_dim_v": changes["head_dim"], **changes}
    problem = replace(FEW, **changes)  # type: ignore[arg-type]
    assert packed(problem, 2) == group
    built = dict(whole.build_of(problem, CONFIG).defines)
    assert built.get("PACK_GQA", 0) == group and whole.shape_of(problem, CONFIG).group == max(1, group)


@pytest.mark.parametrize("group", range(2, GROUP_ROWS + 1))
def test_a_tile_has_whole_queries_and_a_launch_enough_of_them(group: int) -> None:
    problem = replace(FEW, heads_q=4 * group, seq_q=20)
    shape = replace(whole.shape_of(FEW, CONFIG), group=group)
    assert shape.tile_rows == 2 * queries_of(group) * group <= shape.held_rows == 128
    launch = whole.Launch()
    tiles = fill(launch, problem, (2, 4 * group, 20, 128), (2, 4, 4096, 128), shape.tile_rows, group)
    assert launch.heads == 4 and launch.row_tiles == -(-20 // (2 * queries_of(group))) and tiles == 8 * launch.row_tiles


def test_parts_have_room_for_rows_of_nobody_too() -> None:
    shape = split.shape_of(replace(FEW, heads_q=20), Config((("tile_keys", 112), ("warpgroups", 2), ("key_splits", 4))))
    assert shape.group == 5 and shape.tile_rows == 120
    assert shape.partial_floats == 128 * (128 + split.STATE_FLOATS)


def test_a_tile_of_rows_that_heads_share_is_of_few_numbers_of_keys_and_holds_no_q_in_registers() -> None:
    arch = by_name("sm90a")
    legal = [dict(each.values) for each in HOPPER.configs() if not HOPPER.illegal(FEW, each, arch)]  # type: ignore[misc]
    assert {each["tile_keys"] for each in legal} == {64, 80, 112, 128}
    assert {(each["warpgroups"], each["stages"], each["q_in_registers"]) for each in legal} == {(2, 2, 0)}
