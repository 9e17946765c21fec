"""Keys of a row on several blocks: where that is legal, what it takes, and that it fills waves."""

from dataclasses import replace

import pytest

from attention.choose.model import predict
from attention.choose.shares import share_of_busiest
from attention.errors import LaunchError
from attention.estimate.blocks import Tiles, parts_of
from attention.kernels.common.key_splits import MOST_TILES
from attention.kernels.launch.launcher import _room_for_parts
from attention.kernels.launch.strided import SplitLaunch
from attention.problem import AttentionProblem
from attention.variant import Config, Variant, by_path
from microbench.machine.arch import by_name
from microbench.results.profile import Profile

VOLTA, TURING = by_path("sm70/forward/quad_pair"), by_path("sm75/forward/register_staged")
FEW = AttentionProblem(1, 2, 2, 256, 4096, 128, dtype="float16", device="cuda")  # four tiles of 128 rows
SMS = 80


def config(variant: Variant, key_splits: int) -> Config:
    """Tiles of 128 rows and 64 keys."""
    axes = {"warps": 8, "warp_rows": 16, "tile_keys": 64} | ({"p_in_registers": 1} if variant is VOLTA else {})
    return Config(tuple((axes | {"key_splits": key_splits}).items()))


@pytest.fixture(params=[VOLTA, TURING], ids=lambda each: each.name)
def variant(request: pytest.FixtureRequest) -> Variant:
    return request.param


def why_not(variant: Variant, problem: AttentionProblem, key_splits: int) -> str | None:
    assert variant.illegal is not None
    return variant.illegal(problem, config(variant, key_splits), by_name(variant.archs[0]))


def test_few_rows_with_many_keys_may_be_split(variant: Variant) -> None:
    assert [why_not(variant, FEW, splits) for splits in (1, 2, 3, 4, 8)] == [None] * 5


def test_splits_are_pointless_where_rows_fill_the_gpu(variant: Variant) -> None:
    many = replace(FEW, heads_q=MOST_TILES // 2, heads_kv=1)
    assert why_not(variant, many, 2) is None
    said = why_not(variant, replace(many, batch=2), 2)
    assert said is not None and "2048 tiles of rows" in said and why_not(variant, replace(many, batch=2), 1) is None


def test_no_part_is_without_keys(variant: Variant) -> None:
    short = replace(FEW, seq_kv=3 * 64)
    assert why_not(variant, short, 3) is None
    assert "to 4 blocks, which are 3 tiles" in str(why_not(variant, short, 4))
    windowed = replace(FEW, window=(0, 63))  # 191 keys of a tile of rows
    assert why_not(variant, windowed, 3) is None and "which are 3 tiles" in str(why_not(variant, windowed, 4))


def test_the_workspace_has_room_for_what_every_block_leaves(variant: Variant) -> None:
    assert variant.workspace(FEW, config(variant, 1)) == 0
    softmax = 4 * 256  # of each thread
    assert variant.workspace(FEW, config(variant, 3)) == 4 * 3 * 4 * (128 * 128 + softmax)


def test_the_model_knows_that_parts_fill_waves(variant: Variant) -> None:
    def share(problem: AttentionProblem, key_splits: int) -> tuple[float, float, int]:
        assert variant.tile is not None
        found = share_of_busiest(problem, variant.tile(problem, config(variant, key_splits)), SMS)
        return found.tiles, found.rows, found.busy_units

    assert share(FEW, 1) == (64, 1, 4) and share(FEW, 8) == (8, 1, 32)
    assert share(FEW, 3) == (22, 1, 12)  # whole tiles
    wave = replace(FEW, heads_q=SMS // 2, heads_kv=1)  # one block for each SM
    assert share(wave, 1) == (64, 1, SMS) and share(wave, 2) == (64, 2, SMS)
    tail = replace(wave, heads_q=60)  # a wave and a half
    assert share(tail, 1) == (128, 2, SMS) and share(tail, 2) == (96, 3, SMS)


def test_more_tiles_than_counters_are_not_launched() -> None:
    class Shape:
        key_splits = 2

    launch = SplitLaunch(tiles=MOST_TILES + 1)
    with pytest.raises(LaunchError, match=f"{MOST_TILES + 1} tiles of rows have their keys split"):
        _room_for_parts(launch, Shape())


def test_the_estimate_deals_tiles_as_the_kernel_does() -> None:
    assert parts_of(Tiles(9, 1), 1) == (Tiles(9, 1),)
    assert parts_of(Tiles(9, 1), 3) == (Tiles(3, 0), Tiles(3, 0), Tiles(3, 1))
    assert parts_of(Tiles(1, 2), 2) == (Tiles(1, 0), Tiles(0, 2))
    assert parts_of(Tiles(0, 2), 8) == (Tiles(0, 1), Tiles(0, 1))


def test_parts_of_one_tile_load_it_once() -> None:
    """256 keys of head dim 256 in four parts of two tiles, and in eight of one: 11.94 and 11.55 us on an H200."""
    few, profile = by_path("sm80/forward/split_keys"), Profile.load("h200-sxm-141gb")
    problem = AttentionProblem(8, 8, 4, 1, 256, 256, dtype="bfloat16", device="cuda", softcap=50.0)
    four, eight = (
        predict(profile, problem, few, Config((("warps", 4), ("tile_keys", 32), ("key_splits", parts)))).seconds
        for parts in (4, 8)
    )
    assert eight < four
