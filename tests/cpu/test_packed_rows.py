"""Which calls' query heads share a warpgroup's rows on Hopper, and what follows for a launch."""

from dataclasses import replace

import pytest

from attention.choose.warpgroups.dealt import by_groups, dealt
from attention.kernels.common.family import fill
from attention.kernels.sm90a.forward.split_keys import arguments as split
from attention.kernels.sm90a.forward.warp_specialised import arguments as whole
from attention.kernels.sm90a.packed import GROUP_ROWS, packed, queries_of
from attention.problem import AttentionProblem
from attention.tile import WarpgroupTile
from attention.variant import Config, by_path
from microbench.machine.arch import by_name

FEW = AttentionProblem(2, 32, 4, 11, 4096, 128, dtype="bfloat16", device="cuda", causal=True, alignment="bottom_right")
CONFIG = Config((("tile_keys", 128), ("warpgroups", 2), ("stages", 2), ("q_in_registers", 0)))
PLAIN = AttentionProblem(4, 32, 32, 4096, 4096, 64, dtype="bfloat16", device="cuda")
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


def test_heads_that_share_rows_are_counted_in_queries() -> None:
    asked = replace(PLAIN, heads_kv=4, seq_q=11)
    together, alone = dealt(by_groups(asked, 8), 16, 128, 132), dealt(asked, 128, 128, 132)
    assert (together.every, alone.every) == (4 * 4, 4 * 32) and together.in_all == alone.in_all / 8
    assert by_groups(asked, 1) is asked


def test_a_tile_that_heads_share_says_which_of_its_warpgroups_have_rows() -> None:
    assert HOPPER.residents is not None
    found = [HOPPER.residents(replace(PLAIN, heads_kv=4, seq_q=queries), CONFIG) for queries in (8, 9, 16, 128)]
    assert [(each.group, each.warpgroups) for each in found if isinstance(each, WarpgroupTile)] == [
        (8, 1),
        (8, 2),
        (8, 2),
        (1, 2),
    ]
