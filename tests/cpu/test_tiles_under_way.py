"""Blocks of warps that share rows and begin together: when their first tiles come, and which tiles load another one."""

import pytest

from attention.choose.coefficients.table import of
from attention.choose.lengths import UNKNOWN
from attention.choose.rates import machine_of
from attention.choose.scores import cost_of
from attention.choose.warps.block import Block, block_of
from attention.choose.warps.dealt import dealt
from attention.choose.warps.predicted import _keep_step, rates_of
from attention.choose.warps.waits import WAITS, waits_of
from attention.problem import AttentionProblem
from attention.tile import WarpTile
from attention.variant import Config, by_path
from microbench.results.profile import Profile

MACHINE = machine_of(Profile.load("h200-sxm-141gb"))
SMS = MACHINE.profile.sm_count
DECODE = by_path("sm80/forward/split_keys")
TILE_BYTES = 128 * 64 * 2 * 2  # of 128 keys of head dim 64, K and V


def problem_of(heads: int, keys: int = 512, head_dim: int = 64) -> AttentionProblem:
    return AttentionProblem(1, heads, heads, 1, keys, head_dim, dtype="bfloat16", device="cuda")


def tile_of(problem: AttentionProblem, stages: int = 3, keys: int = 128) -> WarpTile:
    axes = {"warps": 4, "tile_keys": keys, "key_splits": 1, "key_stages": stages}
    assert DECODE.residents is not None
    tile = DECODE.residents(problem, Config(tuple(axes.items())))
    assert isinstance(tile, WarpTile)
    return tile


def block_at(heads: int, stages: int, keys: int = 512) -> Block:
    problem = problem_of(heads, keys)
    tile = tile_of(problem, stages)
    (stay,) = dealt(problem, tile, SMS, UNKNOWN).stays
    return block_of(tile, cost_of(problem), stay.work, stay.resident, rates_of(MACHINE, min(SMS, heads)))


@pytest.mark.parametrize("heads", [96, 128])
def test_the_first_tile_of_many_blocks_comes_with_all_that_they_asked_for(heads: int) -> None:
    one, two = block_at(heads, 2), block_at(heads, 3)
    assert two.entered - one.entered == pytest.approx(TILE_BYTES / rates_of(MACHINE, heads).dram_share, rel=1e-6)


def test_few_blocks_have_one_tile_after_the_other() -> None:
    assert block_at(8, 3).entered == pytest.approx(block_at(8, 2).entered)


def test_a_block_with_one_tile_waits_for_that_one() -> None:
    assert block_at(128, 3, keys=128).entered == pytest.approx(block_at(128, 2, keys=128).entered)


def test_blocks_that_follow_one_another_do_not_wait_together() -> None:
    shares = [dealt(problem_of(heads), tile_of(problem_of(heads)), SMS, UNKNOWN) for heads in (100, 200, 2000)]
    assert [share.stays[-1].work.beside for share in shares] == [1.0, pytest.approx(200 / SMS), 0.0]


@pytest.mark.parametrize("keys", [128, 256, 512, 1024])
def test_tiles_that_load_no_other_one_meet_nobody(keys: int) -> None:
    problem = problem_of(8, keys)

    def turns(stages: int) -> float:
        tile = tile_of(problem, stages)
        (stay,) = dealt(problem, tile, SMS, UNKNOWN).stays
        waits = waits_of(tile, cost_of(problem), stay.work, 1, rates_of(MACHINE, 8))
        named = dict(zip((name for name, _ in WAITS), (each for group in waits for each in group), strict=True))
        return named["turns of tiles"] / MACHINE.value("l2_latency_cycles")

    loads = [of("turn_trips") * max(0, keys // 128 - ahead) for ahead in (1, 2)]
    assert [turns(2), turns(3)] == pytest.approx(loads)


@pytest.mark.parametrize(
    ("heads", "head_dim", "keys", "keep"),
    [(128, 112, 64, True), (128, 112, 128, False), (64, 112, 128, True), (128, 64, 128, True)],
)
def test_blocks_keep_step_where_little_is_under_way(heads: int, head_dim: int, keys: int, keep: bool) -> None:
    def keeps(of_keys: int) -> bool:
        problem = problem_of(heads, of_keys, head_dim)
        tile = tile_of(problem, keys=keys)
        return _keep_step(MACHINE, problem, tile, dealt(problem, tile, SMS, UNKNOWN))

    assert keeps(8192) == keep and keeps(keys)  # of one tile each half as much is under way
